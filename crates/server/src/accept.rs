//! Acceptance of connections until the server stops.

use std::io;

use tokio::sync::watch;

/// Returns the next accepted connection, or `None` once the server stops.
pub(crate) async fn next<T>(
    accept: impl Future<Output = io::Result<T>>,
    stop: &mut watch::Receiver<bool>,
) -> Option<io::Result<T>> {
    let (mut accept, mut stopped) =
        (std::pin::pin!(accept), std::pin::pin!(stop.wait_for(|is| *is)));
    std::future::poll_fn(|context| {
        if stopped.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(None);
        }
        accept.as_mut().poll(context).map(Some)
    })
    .await
}
