//! The clock that interrupts flights.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::{Engine, EngineWeak};

/// How often running flights look up.
pub(super) const TICK: Duration = Duration::from_millis(1);
/// How many ticks without a flight before the thread goes to sleep: an idle process does not wake
/// up, and a busy one does not pay for waking the thread at each call.
const LINGER: u32 = 100;

/// A thread that moves the engine's epoch while flights run. Started with the first of them,
/// asleep when there are none, and gone when the ticker is dropped.
pub(super) struct Ticker {
    shared: Arc<Shared>,
    engine: EngineWeak,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    running: AtomicU64,
    asleep: AtomicBool,
    ended: AtomicBool,
}

/// A flight that runs: the epoch moves as long as one exists.
#[derive(Debug)]
pub(super) struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, SeqCst);
    }
}

impl Ticker {
    pub(super) fn new(engine: &Engine) -> Self {
        // Asleep before the thread exists, so that the first flight starts it.
        let shared = Shared { asleep: AtomicBool::new(true), ..Shared::default() };
        Self { shared: Arc::new(shared), engine: engine.weak(), thread: Mutex::new(None) }
    }

    /// Makes the epoch move. An error if the system has no thread left.
    pub(super) fn run(&self) -> std::io::Result<Running<'_>> {
        self.shared.running.fetch_add(1, SeqCst);
        let running = Running(&self.shared);
        // The thread says that it falls asleep before it looks at the count a last time, and the
        // count is raised before this looks whether it sleeps: one of both sees the other.
        if self.shared.asleep.swap(false, SeqCst) {
            let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            match &*thread {
                Some(thread) => thread.thread().unpark(),
                None => {
                    let (shared, engine) = (self.shared.clone(), self.engine.clone());
                    let started = thread::Builder::new()
                        .name("flight-clock".into())
                        .spawn(move || tick(&shared, &engine));
                    match started {
                        Ok(started) => *thread = Some(started),
                        Err(error) => {
                            self.shared.asleep.store(true, SeqCst);
                            return Err(error);
                        }
                    }
                }
            }
        }
        Ok(running)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.ended.store(true, SeqCst);
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            thread.thread().unpark();
            // A panic of that thread has nothing to say here.
            let _ = thread.join();
        }
    }
}

fn tick(shared: &Shared, engine: &EngineWeak) {
    let mut idle = 0;
    while !shared.ended.load(SeqCst) {
        let Some(engine) = engine.upgrade() else { return };
        engine.increment_epoch();
        drop(engine);
        idle = if shared.running.load(SeqCst) == 0 { idle + 1 } else { 0 };
        if idle < LINGER {
            thread::sleep(TICK);
            continue;
        }
        idle = 0;
        shared.asleep.store(true, SeqCst);
        while shared.running.load(SeqCst) == 0 && shared.asleep.load(SeqCst) && !shared.ended.load(SeqCst) {
            thread::park();
        }
        shared.asleep.store(false, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch_moves(ticker: &Ticker, engine: &Engine) -> bool {
        let mut store = wasmtime::Store::new(engine, ());
        store.set_epoch_deadline(1);
        let module = wasmtime::Module::new(
            engine,
            wat::parse_str("(module (func (export \"f\") (loop (br 0))))").unwrap(),
        );
        let instance = wasmtime::Instance::new(&mut store, &module.unwrap(), &[]).unwrap();
        let f = instance.get_typed_func::<(), ()>(&mut store, "f").unwrap();
        let running = ticker.run().unwrap();
        let trapped = f.call(&mut store, ()).is_err();
        drop(running);
        trapped
    }

    /// The loop in the guest ends only if the epoch moves, so a lost wake-up hangs here.
    #[test]
    fn wakes_up_again_after_sleeping() {
        let mut config = wasmtime::Config::new();
        config.epoch_interruption(true);
        let engine = Engine::new(&config).unwrap();
        let ticker = Ticker::new(&engine);
        for _ in 0..3 {
            assert!(epoch_moves(&ticker, &engine));
            while !ticker.shared.asleep.load(SeqCst) {
                thread::sleep(TICK);
            }
        }
    }
}
