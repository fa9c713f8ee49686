//! Runs the program, and kills it if it does not end.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The outcome of a run.
pub(crate) struct Ended {
    /// The exit code; `None` if the process was killed, also after a timeout.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A run in progress. Its output goes to files, which unlike pipes never fill up.
pub(crate) struct Running {
    pub child: Child,
    out: PathBuf,
    log: PathBuf,
}

/// Maximum time of a run: a hundred times that on an idle machine.
const LONGEST: Duration = Duration::from_mins(1);
const STEP: Duration = Duration::from_millis(10);

pub(crate) fn levelhead(arguments: &[impl AsRef<str>]) -> Ended {
    start(arguments, None).end()
}

/// Starts the program. Its stdout goes to a file unless another target is given.
pub(crate) fn start(arguments: &[impl AsRef<str>], stdout: Option<Stdio>) -> Running {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = |name: &str| directory.join(format!("run-{}-{number}.{name}", std::process::id()));
    let file = |path: &Path| Stdio::from(File::create(path).expect("the directory takes files"));
    let (out, log) = (path("out"), path("log"));
    let own = file(&out);
    let child = Command::new(env!("CARGO_BIN_EXE_levelhead"))
        .args(arguments.iter().map(AsRef::as_ref))
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(stdout.unwrap_or(own))
        .stderr(file(&log))
        .spawn()
        .expect("the program was built");
    Running { child, out, log }
}

impl Running {
    /// Waits for the end.
    pub(crate) fn end(self) -> Ended {
        self.end_within(LONGEST)
    }

    /// Waits for the end, at most this long.
    pub(crate) fn end_within(mut self, longest: Duration) -> Ended {
        let mut code = None;
        let is_over =
            wait_until(longest, || match self.child.try_wait().expect("our own process") {
                Some(status) => {
                    code = status.code();
                    true
                }
                None => false,
            });
        if !is_over {
            self.child.kill().expect("our own process");
            self.child.wait().expect("our own process");
        }
        let text = |path: &Path| {
            let mut bytes = Vec::new();
            File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).expect("our file");
            let _ = fs::remove_file(path);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (stdout, mut stderr) = (text(&self.out), text(&self.log));
        if !is_over {
            stderr.push_str("[did not end]");
        }
        Ended { code, stdout, stderr }
    }

    /// Waits until stderr contains `words`.
    pub(crate) fn wait_for(&self, words: &str) {
        let has_said = || fs::read_to_string(&self.log).is_ok_and(|text| text.contains(words));
        assert!(wait_until(LONGEST, has_said), "it never said {words}");
    }
}

/// Waits until `is_so` returns true, at most this long. Returns whether it did.
#[expect(clippy::disallowed_methods, reason = "the program runs in real time")]
fn wait_until(longest: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..longest.as_millis() / STEP.as_millis() {
        if is_so() {
            return true;
        }
        std::thread::sleep(STEP);
    }
    false
}
