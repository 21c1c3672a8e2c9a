//! The worker of rslock, with the line protocol of verify/interop/README.md.
//!
//! `interop-worker rslock PORT`

use std::io::{stdin, BufRead};
use std::time::Duration;

use rslock::{Lock, LockError, LockManager};
use tokio::time::timeout;

fn main() {
    let port = std::env::args().nth(2).expect("a port");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let manager = LockManager::new(vec![format!("redis://127.0.0.1:{port}")]);
    let mut held: Option<Lock> = None;
    println!("ready");
    for line in stdin().lock().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "quit" {
            break;
        }
        println!("{}", runtime.block_on(reply(&manager, &mut held, &words)));
    }
}

async fn reply(manager: &LockManager, held: &mut Option<Lock>, words: &[&str]) -> String {
    let sent = now();
    match words[0] {
        "acquire" => {
            let (key, ttl, wait) = (words[1].as_bytes(), millis(words[2]), millis(words[3]));
            match timeout(wait, manager.acquire_no_guard(key, ttl)).await {
                Err(_) => format!("refused {sent:.3} {:.3}", now()),
                Ok(Err(error)) => failed(sent, error),
                Ok(Ok(lock)) => {
                    let at = now();
                    let valid_until = at + lock.validity_time as f64;
                    *held = Some(lock);
                    format!("granted {sent:.3} {at:.3} {valid_until:.3} -")
                }
            }
        }
        // rslock does not report whether the lock was still held.
        "release" => {
            if let Some(lock) = held.as_ref() {
                manager.unlock(lock).await;
            }
            format!("released {sent:.3} {:.3} true", now())
        }
        "extend" => match manager.extend(held.as_ref().expect("a lock"), millis(words[1])).await {
            Ok(lock) => {
                let at = now();
                let valid_until = at + lock.validity_time as f64;
                *held = Some(lock);
                format!("extended {sent:.3} {at:.3} {valid_until:.3}")
            }
            Err(LockError::Unavailable) => format!("refused {sent:.3} {:.3}", now()),
            Err(error) => failed(sent, error),
        },
        other => format!("error {sent:.3} {:.3} unknown request: {other}", now()),
    }
}

fn failed(sent: f64, error: LockError) -> String {
    let text = error.to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("error {sent:.3} {:.3} {}", now(), words.join(" "))
}

fn millis(text: &str) -> Duration {
    Duration::from_millis(text.parse().expect("milliseconds"))
}

/// Milliseconds of the monotonic clock that all processes of the machine share.
fn now() -> f64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // The call fills the structure, and cannot fail with this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut at) };
    at.tv_sec as f64 * 1e3 + at.tv_nsec as f64 / 1e6
}
