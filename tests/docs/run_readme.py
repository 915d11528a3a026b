#!/usr/bin/env python3
"""Runs the commands that README.md shows, and checks that the documents' links lead somewhere.

    run_readme.py HEXLLM        HEXLLM: the program that stands for build/release/hexllm

Every line "$ build/release/hexllm ..." or "$ echo ..." of a fenced block runs in a folder where a tiny model with the same kind of tokenizer
and chat template stands in for the downloaded one. It must succeed; what it prints is that model's and is not compared.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "DEVELOPERS.md", *sorted((ROOT / "docs").rglob("*.md"))]
STAND_IN = ROOT / "tests/data/gguf/llama/llama-h64-Q4_1.gguf"
MODEL = "models/SmolLM2-135M-Instruct.Q4_1.gguf"


def commands(text):
    """The commands of all fenced blocks, continuation lines joined."""
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith(("$ build/release/hexllm ", "$ echo ")):
                yield line[2:]


def run_readme(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path, target in (("build/release/hexllm", program), (MODEL, STAND_IN)):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).symlink_to(target)
        count = 0
        for command in commands((ROOT / "README.md").read_text()):
            print("$", command, flush=True)
            subprocess.run(command, shell=True, cwd=folder, check=True, timeout=120)
            count += 1
        if count == 0:
            sys.exit("README.md shows no command")


def check_links():
    for document in DOCUMENTS:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            if not (document.parent / link).exists():
                sys.exit(f"{document.relative_to(ROOT)}: the link to {link} leads nowhere")


if __name__ == "__main__":
    check_links()
    run_readme(pathlib.Path(sys.argv[1]).resolve())
