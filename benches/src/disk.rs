//! The disk itself: what one durable write costs here. Times of the store are to be read beside it.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::time::Instant;

use crate::Failure;
use crate::table::{Samples, Table, ms};

pub fn run(table: &mut Table) -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let mut file = File::create(directory.path().join("raw"))?;
    file.write_all(&[0; 1 << 20])?;
    file.sync_all()?;
    let mut samples = Vec::new();
    for i in 0..500_u64 {
        let started = Instant::now();
        file.seek(SeekFrom::Start(i % 256 * 4096))?;
        file.write_all(&[i as u8; 4096])?;
        rustix::fs::fdatasync(&file)?;
        samples.push(started.elapsed());
    }
    let samples = Samples::new(samples);
    table.row(
        "raw fdatasync of 4 KiB, p50",
        ms(samples.quantile(0.5)),
        "-",
        format!("p99 {}", ms(samples.quantile(0.99))),
    );
    Ok(())
}
