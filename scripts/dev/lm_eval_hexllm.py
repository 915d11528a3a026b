#!/usr/bin/env python3
"""Runs lm-evaluation-harness with hexllm as its model: every score comes from `hexllm eval`.

    python3 -m venv VENV && VENV/bin/pip install lm-eval torch transformers gguf accelerate
    VENV/bin/python scripts/dev/lm_eval_hexllm.py --model hexllm --model_args path=out.hxl --tasks arc_easy --limit 50
    VENV/bin/python scripts/dev/lm_eval_hexllm.py --model hf --model_args pretrained=DIR --jsonl FILE.jsonl --limit 200

All flags but --jsonl are lm_eval's. --jsonl FILE scores the questions of a file that `hexllm eval --tasks FILE.jsonl` also reads
({"query", "choices", "label"} a line) and prints acc and acc_norm. model_args of hexllm: path (artifact or model), binary
(build/release/hexllm), window (512) and flags (more flags of `hexllm eval`, separated by spaces: "--stages qdq --recipe 16a8w").
Runs no server; tasks that generate text are refused. Development only: hexllm itself needs no Python.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@register_model("hexllm")
class HexllmLM(LM):
    """Log-likelihoods from the JSON that `hexllm eval --log-samples` writes."""

    def __init__(self, path, binary=str(ROOT / "build/release/hexllm"), window=512, flags="", **_):
        super().__init__()
        self.command = [binary, "eval", str(path), "-q", "--window", str(window), *str(flags).split()]

    def items(self, lines):
        """The items of the result for a task file of these lines."""
        with tempfile.TemporaryDirectory() as folder:
            task, result = pathlib.Path(folder) / "requests.jsonl", pathlib.Path(folder) / "result.json"
            task.write_text("".join(json.dumps(line) + "\n" for line in lines))
            done = subprocess.run(self.command + ["--tasks", task, "--json", result, "--log-samples"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                raise RuntimeError(done.stderr.strip())
            sys.stderr.write(done.stderr)
            return json.loads(result.read_text())["tasks"][0]["stages"][0]["items"]

    def loglikelihood(self, requests):
        lines = [{"context": context, "continuation": continuation} for context, continuation in (r.args for r in requests)]
        return [(-item["scores"][0]["nll"], item["scores"][0]["greedy"]) for item in self.items(lines)]

    def loglikelihood_rolling(self, requests):
        # hexllm leaves documents without tokens out.
        filled = [i for i, request in enumerate(requests) if request.args[0]]
        sums = [0.0] * len(requests)
        for i, item in zip(filled, self.items([{"text": requests[i].args[0]} for i in filled]), strict=True):
            sums[i] = -sum(score["nll"] for score in item["scores"])
        return sums

    def generate_until(self, requests):
        raise NotImplementedError("hexllm scores texts here; tasks that generate them need its server")


def score_jsonl(model, model_args, path, limit):
    """acc and acc_norm of a local file of questions."""
    import lm_eval
    import lm_eval.models  # noqa: F401  registers hf
    task = {"task": "local", "dataset_path": "json", "dataset_kwargs": {"data_files": {"validation": str(path)}},
            "output_type": "multiple_choice", "validation_split": "validation", "doc_to_text": "{{query}}",
            "doc_to_target": "label", "doc_to_choice": "choices",
            "metric_list": [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in ("acc", "acc_norm")]}
    results = lm_eval.simple_evaluate(model=model, model_args=model_args, tasks=[task], limit=limit, bootstrap_iters=0)
    figures = results["results"]["local"]
    print(json.dumps({name: figures[f"{name},none"] for name in ("acc", "acc_norm")}))


def main():
    if "--jsonl" not in sys.argv:
        from lm_eval.__main__ import cli_evaluate
        return cli_evaluate()
    import argparse
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--model_args", required=True)
    parser.add_argument("--jsonl", type=pathlib.Path, required=True)
    parser.add_argument("--limit", type=int)
    args = parser.parse_args()
    return score_jsonl(args.model, args.model_args, args.jsonl, args.limit)


if __name__ == "__main__":
    sys.exit(main())
