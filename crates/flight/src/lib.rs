//! What the author of a flight uses: the contract, typed reads, main! and a test harness.

pub mod contract;
