//! The guest's memory, seen through checked reads and writes.

use super::Errno;

/// The guest's memory during one host call. Every access is checked; there is no other.
pub(crate) struct Guest<'a>(pub(crate) &'a mut [u8]);

impl Guest<'_> {
    /// The bytes at an address.
    pub(crate) fn bytes(&self, address: u32, length: u32) -> Result<&[u8], Errno> {
        let start = address as usize;
        let end = start.checked_add(length as usize).ok_or(Errno::FAULT)?;
        self.0.get(start..end).ok_or(Errno::FAULT)
    }

    /// The bytes at an address, to be written.
    pub(crate) fn bytes_mut(&mut self, address: u32, length: u32) -> Result<&mut [u8], Errno> {
        let start = address as usize;
        let end = start.checked_add(length as usize).ok_or(Errno::FAULT)?;
        self.0.get_mut(start..end).ok_or(Errno::FAULT)
    }

    fn array<const N: usize>(&self, address: u32) -> Result<[u8; N], Errno> {
        self.bytes(address, N as u32)?.try_into().map_err(|_| Errno::FAULT)
    }

    pub(crate) fn u8(&self, address: u32) -> Result<u8, Errno> {
        self.array::<1>(address).map(|[byte]| byte)
    }

    pub(crate) fn u16(&self, address: u32) -> Result<u16, Errno> {
        self.array(address).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&self, address: u32) -> Result<u32, Errno> {
        self.array(address).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&self, address: u32) -> Result<u64, Errno> {
        self.array(address).map(u64::from_le_bytes)
    }

    pub(crate) fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), Errno> {
        let length = u32::try_from(bytes.len()).map_err(|_| Errno::FAULT)?;
        self.bytes_mut(address, length)?.copy_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn write_u32(&mut self, address: u32, value: u32) -> Result<(), Errno> {
        self.write(address, &value.to_le_bytes())
    }

    pub(crate) fn write_u64(&mut self, address: u32, value: u64) -> Result<(), Errno> {
        self.write(address, &value.to_le_bytes())
    }
}

/// Adds an offset to an address. Addresses that wrap are bad addresses.
pub(crate) fn offset(address: u32, by: u32) -> Result<u32, Errno> {
    address.checked_add(by).ok_or(Errno::FAULT)
}
