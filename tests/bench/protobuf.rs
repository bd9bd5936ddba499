//! Enough of protobuf to find spans in bytes; the instrument shares no code with what it measures.

/// The length-delimited fields of a message; ends at the first thing that is not readable.
pub fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        loop {
            let key = varint(&mut bytes)?;
            let skip = match key & 7 {
                0 => {
                    varint(&mut bytes)?;
                    continue;
                }
                1 => 8,
                5 => 4,
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?).ok()?;
                    let (body, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    return Some((key >> 3, body));
                }
                _ => return None,
            };
            bytes = bytes.get(skip..)?;
        }
    })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
