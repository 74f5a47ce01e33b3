//! Health commands: a program and its arguments, no shell; exit code 0 is healthy.
//!
//! A command is started once a second, or once an interval if that is longer. One that still runs
//! when it is due again is killed and has failed. Of its output only the start of its standard error is
//! read, for the status.

use std::{process::Stdio, time::Duration};
use tokio::{io::AsyncReadExt, process::Command, sync::mpsc, task::JoinHandle, time};

/// The least time between two starts of a command.
const EVERY: Duration = Duration::from_secs(1);
/// Bytes that are kept of its standard error.
const KEPT: usize = 200;

/// The result of a command: its index, and the detail as success or failure.
pub(super) type Finding = (usize, Result<String, String>);

/// The running commands; dropping it ends them.
#[derive(Debug, Default)]
pub(super) struct Commands {
    commands: Vec<Vec<String>>,
    every: Duration,
    tasks: Vec<JoinHandle<()>>,
}

impl Commands {
    /// Starts to run the commands; results go to `to`.
    pub(super) fn start(
        commands: &[Vec<String>],
        interval: Duration,
        to: &mpsc::Sender<Finding>,
    ) -> Self {
        let every = EVERY.max(interval);
        let tasks = commands.iter().enumerate().map(|(index, argv)| {
            let (argv, to) = (argv.clone(), to.clone());
            panics::spawn(async move {
                let mut due = time::interval(every);
                due.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
                loop {
                    due.tick().await;
                    panics::point("echo-command");
                    let finding = run(&argv, every).await;
                    if to.send((index, finding)).await.is_err() {
                        return;
                    }
                }
            })
        });
        Self { commands: commands.to_vec(), every, tasks: tasks.collect() }
    }

    /// Whether it already runs these commands with these settings.
    pub(super) fn are(&self, commands: &[Vec<String>], interval: Duration) -> bool {
        self.commands == commands && self.every == EVERY.max(interval)
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Runs a command once; it is killed when it takes longer than `limit`.
async fn run(argv: &[String], limit: Duration) -> Result<String, String> {
    let Some((program, arguments)) = argv.split_first() else { return Err("no program".into()) };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let mut kept = Vec::new();
    let ended = time::timeout(limit, async {
        if let Some(mut stderr) = child.stderr.take() {
            let mut buffer = [0; 1024];
            // Read to the end, so that a command that writes much is not held up.
            while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
                let room = KEPT - kept.len();
                kept.extend_from_slice(&buffer[..length.min(room)]);
            }
        }
        child.wait().await
    })
    .await;
    let output = String::from_utf8_lossy(&kept);
    let output = output.lines().next().unwrap_or_default().trim().to_owned();
    match ended {
        Ok(Ok(status)) if status.success() => Ok(format!("{program}: exit code 0")),
        Ok(Ok(status)) if output.is_empty() => Err(format!("{program}: {status}")),
        Ok(Ok(status)) => Err(format!("{program}: {status}: {output}")),
        Ok(Err(error)) => Err(format!("{program}: {error}")),
        Err(_) => {
            let _ = child.kill().await;
            Err(format!("{program}: killed, it took longer than {limit:?}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sh(script: &str) -> Result<String, String> {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned);
        run(&argv, Duration::from_millis(500)).await
    }

    #[tokio::test]
    async fn exit_code_and_first_line_are_reported() {
        assert!(sh("exit 0").await.is_ok());
        assert!(sh("echo no >&2; echo more >&2; exit 3").await.unwrap_err().ends_with("3: no"));
        assert!(run(&["/nonexistent/x".into()], EVERY).await.unwrap_err().contains("/nonexistent"));
    }

    #[tokio::test]
    async fn a_slow_command_is_killed() {
        let begun = std::time::Instant::now();
        assert!(sh("exec sleep 10").await.unwrap_err().contains("killed"));
        assert!(begun.elapsed() < Duration::from_secs(3));
    }

    #[tokio::test]
    async fn a_command_that_writes_much_is_not_held_up() {
        let output = sh("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1").await.unwrap_err();
        assert!(output.contains("xxx") && output.len() < KEPT + 60, "{output}");
    }
}
