//! How wasmtime is set up.

use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig, Strategy};

use crate::EngineOptions;
use crate::module::{MAX_TABLE_ELEMENTS, MAX_TABLES};

/// The native stack of a flight in bytes: half of what a thread of Rust's or tokio's has.
const STACK: usize = 1 << 20;
/// The address space of one memory in the pool: all that a 32-bit flight can have.
const MEMORY_SLOT: usize = 4 << 30;
/// How much of a memory is cleared instead of given back to the system between two evaluations:
/// about what a small flight touches, and far cheaper for it. Linux since 6.7 says which pages that
/// are; before, it is the lowest ones, which in a Rust flight are unused stack.
const KEEP_RESIDENT: usize = 256 << 10;
/// How many unused memories keep the pages of the module they last ran.
const WARM_SLOTS: u32 = 16;

/// The settings that both ways of allocating share.
fn base() -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .epoch_interruption(true)
        .max_wasm_stack(STACK)
        .memory_init_cow(true)
        .cranelift_nan_canonicalization(true)
        .wasm_backtrace_max_frames(None)
        // WebAssembly 2.0 and nothing later. The check before compiling says so too.
        .wasm_simd(true)
        .wasm_bulk_memory(true)
        .wasm_multi_value(true)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_extended_const(false);
    config
}

/// Memories come from a pool that is reserved once, which makes an instance cost microseconds.
pub(super) fn pooled(options: EngineOptions) -> Config {
    let count = options.concurrency.max(1);
    let tables = MAX_TABLES as u32;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(count)
        .total_memories(count)
        .total_tables(count.saturating_mul(tables))
        .max_memories_per_module(1)
        .max_tables_per_module(tables)
        .max_memory_size(MEMORY_SLOT)
        .table_elements(MAX_TABLE_ELEMENTS as usize)
        .max_core_instance_size(16 << 20)
        .max_unused_warm_slots(WARM_SLOTS)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .pagemap_scan(Enabled::Auto)
        .table_keep_resident(64 << 10);
    let mut config = base();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Memories are allocated as they are needed, with explicit bounds checks: works under a limit on
/// address space.
pub(super) fn on_demand() -> Config {
    let mut config = base();
    config
        .allocation_strategy(InstanceAllocationStrategy::OnDemand)
        .memory_reservation(0)
        .memory_reservation_for_growth(1 << 20)
        .memory_guard_size(64 << 10);
    config
}
