/// A numeric field of a tar header: octal digits, or GNU's base-256 with the high bit set (tar(5)).
///
/// Stricter than most readers: a field with anything else in it means that somebody wants two readers to
/// disagree.
pub(crate) fn field(bytes: &[u8]) -> Option<i64> {
    let first = *bytes.first()?;
    if first & 0x80 != 0 {
        return base256(bytes);
    }
    let text: Vec<u8> = bytes.iter().copied().skip_while(|b| *b == b' ').collect();
    let end = text.iter().position(|b| matches!(b, b' ' | 0)).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if !rest.iter().all(|b| matches!(b, b' ' | 0)) {
        return None;
    }
    digits.iter().try_fold(0i64, |n, b| match b {
        b'0'..=b'7' => n.checked_mul(8)?.checked_add(i64::from(b - b'0')),
        _ => None,
    })
}

fn base256(bytes: &[u8]) -> Option<i64> {
    let first = *bytes.first()?;
    // Bit 6 is the sign; the high bit is the marker and belongs to neither.
    let mut n: i128 = if first & 0x40 != 0 { i128::from(first) - 0x100 } else { i128::from(first & 0x7f) };
    for b in bytes.iter().skip(1) {
        n = n.checked_mul(256)?.checked_add(i128::from(*b))?;
    }
    i64::try_from(n).ok()
}

/// As [`field`], for what cannot be negative.
pub(crate) fn unsigned(bytes: &[u8]) -> Option<u64> {
    field(bytes).and_then(|n| u64::try_from(n).ok())
}
