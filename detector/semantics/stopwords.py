"""Names that say nothing about the project's own calls: builtins, library roots, methods of library objects.

Leaving them out of the facts keeps these small; none of them can lead to a function of the project.
"""

from __future__ import annotations

import builtins

BUILTINS = frozenset(dir(builtins))

#: Libraries whose functions do not call back into the project (those that do are handled by name where they matter).
LIBRARIES = frozenset(
    (
        *("torch", "numpy", "np", "scipy", "math", "os", "sys", "re", "json", "logging", "typing", "time", "random"),
        *(
            "collections",
            "dataclasses",
            "pathlib",
            "warnings",
            "enum",
            "abc",
            "copy",
            "io",
            "string",
            "struct",
            "types",
        ),
        *("itertools", "functools", "contextlib", "inspect", "importlib", "tempfile", "shutil", "glob", "pickle"),
        *("regex", "packaging", "yaml", "tqdm", "PIL", "cv2", "jax", "flax", "tensorflow", "pandas", "matplotlib"),
        *("triton", "cutlass", "einops", "safetensors", "huggingface_hub", "requests", "urllib", "socket", "hashlib"),
        *("uuid", "datetime", "operator", "textwrap", "traceback", "unicodedata", "typing_extensions", "sklearn"),
        *("soundfile", "librosa", "torchvision", "torchaudio", "numba", "ctypes", "argparse", "unittest", "pytest"),
    )
)

#: Methods of tensors, strings, lists, dicts, loggers and arrays that no class of a project is expected to mean.
METHODS = frozenset(
    (
        *("view", "reshape", "transpose", "permute", "contiguous", "unsqueeze", "squeeze", "expand", "expand_as"),
        *("size", "dim", "numel", "mean", "sum", "max", "min", "argmax", "argmin", "softmax", "exp", "log", "sqrt"),
        *("pow", "abs", "masked_fill", "masked_fill_", "fill_", "zero_", "copy_", "add_", "mul_", "sub_", "div_"),
        *("matmul", "bmm", "flatten", "unflatten", "chunk", "clamp", "clamp_", "repeat", "repeat_interleave"),
        *("gather", "scatter", "scatter_", "index_select", "index_add_", "index_copy_", "new_zeros", "new_ones"),
        *("new_empty", "new_full", "new_tensor", "type_as", "long", "int", "bool", "any", "all", "item", "tolist"),
        *("numpy", "detach", "nonzero", "cumsum", "unbind", "narrow", "roll", "tril", "triu", "normal_", "uniform_"),
        *(
            "append",
            "extend",
            "insert",
            "pop",
            "items",
            "keys",
            "values",
            "get",
            "setdefault",
            "join",
            "split",
            "strip",
        ),
        *("rstrip", "lstrip", "lower", "upper", "replace", "startswith", "endswith", "format", "encode_plus", "sort"),
        *("index", "count", "copy", "rsplit", "find", "isdigit", "title", "splitlines", "ljust", "rjust", "zfill"),
        *("info", "warning", "warn", "debug", "error", "warning_once", "exception", "info_once", "is_contiguous"),
        *("astype", "shape", "stride", "data_ptr", "element_size", "storage", "ndimension", "is_floating_point"),
        *("requires_grad_", "half", "float", "double", "bfloat16", "cuda", "cpu", "to", "eval", "type"),
        *("exists", "mkdir", "is_dir", "is_file", "read_text", "write_text", "relative_to", "as_posix", "isoformat"),
        *("add_argument", "parse_args", "register_buffer", "register_parameter", "group", "groups"),
    )
)
