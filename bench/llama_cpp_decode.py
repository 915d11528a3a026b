"""The peer's half of bench/compare-llama-cpp: decodes greedily with llama.cpp and prints one JSON line.

    llama_cpp_decode.py MODEL.gguf IDS NEW_TOKENS THREADS CONTEXT        IDS: prompt ids, 1,2,3

Calls the C interface of llama-cpp-python directly, with llama.cpp's own greedy sampler, so that a step costs no more Python than one call.
Time runs from the first new token to the last, as in `hexllm run --stats-json`.
"""
import json
import sys
import time

import llama_cpp


def decode(context, ids):
    tokens = (llama_cpp.llama_token * len(ids))(*ids)  # the batch points at it
    if llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(tokens, len(ids))) != 0:
        sys.exit("llama_decode failed")


def open_context(path, threads, context_tokens):
    model_params = llama_cpp.llama_model_default_params()
    model = llama_cpp.llama_model_load_from_file(path.encode(), model_params)
    if not model:
        sys.exit(f"llama.cpp cannot load {path}")
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = context_tokens
    params.n_threads = params.n_threads_batch = threads
    context = llama_cpp.llama_init_from_model(model, params)
    if not context:
        sys.exit("llama.cpp cannot make a context")
    return context


def main():
    path, ids, new_tokens, threads, context_tokens = sys.argv[1:]
    llama_cpp.llama_backend_init()
    context = open_context(path, int(threads), int(context_tokens))
    sampler = llama_cpp.llama_sampler_init_greedy()
    decode(context, [int(i) for i in ids.split(",")])
    made = [llama_cpp.llama_sampler_sample(sampler, context, -1)]
    start = time.monotonic()
    while len(made) < int(new_tokens):
        decode(context, made[-1:])
        made.append(llama_cpp.llama_sampler_sample(sampler, context, -1))
    seconds = time.monotonic() - start
    print(json.dumps({"tokens_per_second": (len(made) - 1) / seconds, "ids": made,
                      "system": llama_cpp.llama_print_system_info().decode().strip(" |")}))


if __name__ == "__main__":
    main()
