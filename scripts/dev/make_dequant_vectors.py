#!/usr/bin/env python3
"""Writes tests/data/dequant/TYPE.bin: blocks of each GGUF type and what they mean.

Needs `pip install gguf numpy`; its quants module mirrors ggml's reference code
bit for bit. A file holds N blocks as stored, then their elements as f32.

    make_dequant_vectors.py OUT_DIR [BLOCKS] [SEED]
"""
import pathlib
import sys

import gguf
import numpy as np

# Per type: byte offsets of the f16 fields of a block.
HALF_FIELDS = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2],
    "Q6_K": [208],
}
# Zeros, subnormals, the largest, and values whose products round.
HALVES = np.array([0.0, -0.0, 6e-8, -6e-8, 1e-5, 65504, -65504, 1 / 3, -0.1,
                   1.0, 0.0123, -7.77], dtype=np.float16)


def make_blocks(rng, name, count):
    bytes_per_block = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][1]
    blocks = rng.integers(0, 256, (count, bytes_per_block), dtype=np.uint8)
    blocks[0], blocks[1] = 0x00, 0xFF  # all codes smallest, all codes largest
    for offset in HALF_FIELDS[name]:
        half = rng.normal(0, 0.05, count).astype(np.float16)
        odd = rng.random(count) < 0.25
        half[odd] = rng.choice(HALVES, odd.sum())
        half[:2] = [0.5, -0.37]
        blocks[:, offset:offset + 2] = half.view(np.uint8).reshape(count, 2)
    return blocks


def main():
    out = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    rng = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    for name in HALF_FIELDS:
        blocks = make_blocks(rng, name, count)
        values = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[name])
        (out / f"{name.lower()}.bin").write_bytes(
            blocks.tobytes() + values.astype("<f4").tobytes())


if __name__ == "__main__":
    main()
