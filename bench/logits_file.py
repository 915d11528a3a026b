"""Tensors of small safetensors files, and how near two sets of logits are. For the scripts of this folder; Python's library alone."""
import array
import json
import math
import struct

TYPES = {"F32": "f", "I32": "i"}


def read_tensor(path, name):
    """Shape and numbers, flat, of an f32 or i32 tensor."""
    data = path.read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    tensor = json.loads(data[8:8 + length])[name]
    begin, end = (8 + length + offset for offset in tensor["data_offsets"])
    return tensor["shape"], array.array(TYPES[tensor["dtype"]], data[begin:end])


def read_rows(path, name="logits"):
    """Rows of an f32 tensor [T,V]."""
    (_, width), values = read_tensor(path, name)
    return [values[at:at + width] for at in range(0, len(values), width)]


def sqnr(found, wanted):
    """dB over all rows and logits; the more, the nearer. inf for equal rows."""
    signal = math.fsum(b * b for y in wanted for b in y)
    noise = math.fsum((a - b) ** 2 for x, y in zip(found, wanted, strict=True) for a, b in zip(x, y, strict=True))
    return 10 * math.log10(signal / noise) if noise else math.inf
