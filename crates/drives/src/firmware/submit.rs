//! Commands that are in flight from the moment they are submitted.
//!
//! A command whose future is polled within the instant of its submission runs in the task that
//! polls it, like any `async` block: the common case, which costs no task. A command that is not
//! polled in that instant gets a task of its own.
//!
//! Cost: two allocations and a timer for each command.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use runtime::{Event, Handle, JoinHandle};

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

/// The driver of a command.
enum Driver<T> {
    /// The command was not polled yet.
    Nobody(Boxed<T>),
    /// A task of its own.
    Task(JoinHandle<T>),
    /// The task that awaits it.
    Waiter,
}

struct Command<T> {
    handle: Handle,
    name: &'static str,
    driver: RefCell<Driver<T>>,
}

impl<T: 'static> Event for Command<T> {
    fn fire(&self, _: u64) {
        let mut driver = self.driver.borrow_mut();
        *driver = match std::mem::replace(&mut *driver, Driver::Waiter) {
            Driver::Nobody(future) => Driver::Task(self.handle.spawn(self.name, future)),
            other => other,
        };
    }
}

/// The future of a command in flight. See [`submit`].
#[must_use = "the command goes on without it, but nobody learns how it ended"]
pub struct Submitted<T> {
    command: Rc<Command<T>>,
    end: Option<End<T>>,
}

/// The future to poll.
enum End<T> {
    Future(Boxed<T>),
    Task(JoinHandle<T>),
}

/// Submits a command. It runs even if the returned future is never polled, or is dropped before it
/// is polled. Once polled, the future must be awaited to its end by the same task. `name` appears
/// in reports of hangs.
pub fn submit<T: 'static>(
    handle: &Handle,
    name: &'static str,
    command: impl Future<Output = T> + 'static,
) -> Submitted<T> {
    let driver = RefCell::new(Driver::Nobody(Box::pin(command)));
    let command = Rc::new(Command { handle: handle.clone(), name, driver });
    handle.fire_at(handle.now(), Rc::<Command<T>>::clone(&command), 0);
    Submitted { command, end: None }
}

impl<T> Future for Submitted<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Self { command, end } = &mut *self;
        let end = end.get_or_insert_with(|| {
            match std::mem::replace(&mut *command.driver.borrow_mut(), Driver::Waiter) {
                Driver::Nobody(future) => End::Future(future),
                Driver::Task(task) => End::Task(task),
                Driver::Waiter => unreachable!("there is one waiter"),
            }
        });
        match end {
            End::Future(future) => future.as_mut().poll(cx),
            End::Task(task) => Pin::new(task).poll(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use runtime::{Nanos, Runtime};

    use super::*;

    fn take(handle: &Handle, span: u64, ended: &Rc<Cell<u32>>) -> Submitted<u64> {
        let (own, ended) = (handle.clone(), Rc::clone(ended));
        submit(handle, "command", async move {
            own.sleep(Nanos(span)).await;
            ended.set(ended.get() + 1);
            span
        })
    }

    #[test]
    fn commands_go_on_side_by_side_while_only_one_is_awaited() {
        let rt = Runtime::new(1);
        let (handle, ended) = (rt.handle(), Rc::new(Cell::new(0)));
        rt.block_on(async move {
            let (long, short) = (take(&handle, 100, &ended), take(&handle, 70, &ended));
            drop(take(&handle, 50, &ended));
            assert_eq!(long.await, 100);
            assert_eq!(
                (handle.now(), ended.get()),
                (Nanos(100), 3),
                "also the one that was dropped"
            );
            assert_eq!(short.await, 70);
            assert_eq!(handle.now(), Nanos(100));
        });
    }

    #[test]
    fn a_command_that_is_looked_at_late_was_under_way_all_the_time() {
        let rt = Runtime::new(1);
        let (handle, ended) = (rt.handle(), Rc::new(Cell::new(0)));
        rt.block_on(async move {
            let command = take(&handle, 100, &ended);
            handle.sleep(Nanos(60)).await;
            assert_eq!(command.await, 100);
            assert_eq!(handle.now(), Nanos(100));
        });
    }
}
