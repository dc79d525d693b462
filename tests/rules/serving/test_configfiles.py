"""Shell scripts, Dockerfiles, Compose, Kubernetes and engine files: what is found where, and what must not be."""

from __future__ import annotations

import textwrap

import pytest

from awp_lint.detector.finding import Confidence
from awp_lint.rules.serving.configfiles import is_config_file, scan_config_file
from awp_lint.rules.serving.configfiles.scan import read_config_file


def found(path: str, text: str) -> list[tuple[str, int]]:
    """Rule and line of what is shown at the default level."""
    findings = scan_config_file(path, textwrap.dedent(text).lstrip("\n"))
    return sorted((f.rule, f.line) for f in findings if f.confidence.order >= Confidence.MEDIUM.order)


def low(path: str, text: str) -> list[str]:
    findings = scan_config_file(path, textwrap.dedent(text).lstrip("\n"))
    return sorted(f.rule for f in findings if f.confidence is Confidence.LOW)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("serve.sh", True), ("docker/Dockerfile", True), ("Dockerfile.gpu", True), ("compose.yml", True),
        ("k8s/deploy.yaml", True), ("engine.json", True), ("server.py", False), ("README.md", False),
    ],
)  # fmt: skip
def test_which_files(path: str, expected: bool) -> None:
    assert is_config_file(path) is expected


def test_shell_with_continuations() -> None:
    text = r"""
        #!/bin/bash
        export CUDA_LAUNCH_BLOCKING=1
        vllm serve my/model \
          --max-num-seqs 1 \
          --enforce-eager \
          --no-enable-prefix-caching
        """
    assert found("serve.sh", text) == [("AWP804", 5), ("AWP805", 4), ("AWP806", 6), ("AWP811", 2)]


def test_shell_spellings_of_other_engines() -> None:
    text = """
        python3 -m sglang.launch_server --model-path m --disable-cuda-graph --chunked-prefill-size -1
        CUDA_LAUNCH_BLOCKING=1 python -m vllm.entrypoints.openai.api_server --model m --gpu-memory-utilization=0.3
        trtllm-serve m --max_batch_size 1
        text-generation-launcher --model-id m --cuda-graphs 0
        docker run --gpus all vllm/vllm-openai:latest --model m --enforce-eager
        uvicorn server:app --reload
        """
    assert found("run.sh", text) == [
        ("AWP804", 1), ("AWP804", 4), ("AWP804", 5), ("AWP805", 2), ("AWP805", 3), ("AWP806", 1), ("AWP808", 6),
        ("AWP811", 2),
    ]  # fmt: skip


def test_shell_look_alikes() -> None:
    text = """
        # vllm serve m --enforce-eager
        echo "vllm serve m --enforce-eager"
        pip install vllm uvicorn
        vllm serve m --max-num-seqs 256 --gpu-memory-utilization "$SHARE" --max-num-seqs ${SEQS:-1}
        cat <<EOF > notes.txt
        vllm serve m --enforce-eager
        EOF
        vllm serve m --enforce-eager=False --some-new-flag 1
        """
    assert found("serve.sh", text) == []


def test_stated_reason_and_development_files_are_low() -> None:
    text = """
        vllm serve m --enforce-eager  # graph capture crashes on this driver
        """
    assert found("serve.sh", text) == []
    assert low("serve.sh", text) == ["AWP804"]
    assert low("scripts/dev.sh", "vllm serve m --enforce-eager\n") == ["AWP804"]


def test_suppression() -> None:
    [finding] = scan_config_file("serve.sh", "vllm serve m --enforce-eager  # awp: ignore[AWP804] measured\n")
    assert finding.suppressed == "measured"


def test_idle_devices_in_shell() -> None:
    assert found("a.sh", "CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve m --tensor-parallel-size 2\n") == [("AWP809", 1)]
    assert found("a.sh", "CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve m -tp 4 --tensor-parallel-size 4\n") == []
    assert found("a.sh", "CUDA_VISIBLE_DEVICES=0,1 vllm serve m --tensor-parallel-size $TP\n") == []


def test_dockerfile() -> None:
    text = r"""
        FROM vllm/vllm-openai:v0.9.0
        ENV CUDA_LAUNCH_BLOCKING=1 \
            HF_HOME=/models
        ENV TORCHDYNAMO_DISABLE 1
        RUN pip install uvicorn && echo "--reload"
        ENTRYPOINT ["vllm", "serve"]
        CMD ["my/model", \
             "--enforce-eager"]
        """
    assert found("Dockerfile", text) == [("AWP804", 8), ("AWP811", 2), ("AWP811", 4)]


def test_dockerfile_shell_form() -> None:
    assert found("Dockerfile", "FROM x\nCMD uvicorn app:app --host 0.0.0.0 --reload\n") == [("AWP808", 2)]
    assert found("Dockerfile", 'FROM x\nCMD ["sh", "-c", "vllm serve m --enforce-eager"]\n') == [("AWP804", 2)]


def test_compose() -> None:
    text = """
        services:
          llm:
            image: vllm/vllm-openai:latest
            command: --model m --enforce-eager --max-num-seqs 1
            environment:
              - CUDA_LAUNCH_BLOCKING=1
              - HF_TOKEN=${HF_TOKEN}
          web:
            image: web
            command: ["uvicorn", "app:app", "--workers", "8"]
            environment:
              OMP_NUM_THREADS: "16"
            cpus: "4"
        """
    assert found("compose.yaml", text) == [("AWP804", 4), ("AWP805", 4), ("AWP810", 10), ("AWP811", 6)]


def test_kubernetes() -> None:
    text = """
        apiVersion: apps/v1
        kind: Deployment
        spec:
          template:
            spec:
              containers:
                - name: llm
                  image: vllm/vllm-openai:v0.9.0
                  command: ["vllm", "serve", "m"]
                  args:
                    - --tensor-parallel-size
                    - "2"
                    - --enforce-eager
                  env:
                    - name: NCCL_BLOCKING_WAIT
                      value: "1"
                  resources:
                    limits:
                      nvidia.com/gpu: "4"
                - name: script
                  image: custom
                  command: ["/bin/bash", "-c"]
                  args:
                    - |
                      set -e
                      vllm serve m --enforce-eager
        """
    assert found("deploy.yaml", text) == [("AWP804", 13), ("AWP804", 26), ("AWP809", 9), ("AWP811", 16)]


def test_kserve_predictor() -> None:
    text = """
        kind: InferenceService
        spec:
          predictor:
            model:
              modelFormat: {name: huggingface}
              args:
                - --enforce-eager
                - --tensor-parallel-size=1
              resources: {limits: {nvidia.com/gpu: "1"}}
        """
    assert found("isvc.yaml", text) == [("AWP804", 7)]


def test_engine_files() -> None:
    vllm = "model: m\nmax-model-len: 4096\nenforce-eager: true\n"
    assert found("vllm.yaml", vllm) == [("AWP804", 3)]
    trtllm = "enable_chunked_prefill: false\nkv_cache_config:\n  enable_block_reuse: false\n"
    assert found("extra.yaml", trtllm) == [("AWP806", 1), ("AWP806", 3)]
    commented = '{\n  // served at night\n  "max_model_len": 4096, "enforce_eager": true\n}\n'
    assert found("engine.json", commented) == [("AWP804", 3)]
    assert found("other.yaml", "enforce_eager: true\ncolour: red\n") == []


@pytest.mark.parametrize(
    ("path", "text", "note"),
    [
        ("a.yaml", "command: [vllm, serve\n  x: {", "cannot be read"),
        ("a.yaml", "command: {{ .Values.vllm }} --enforce-eager\n", "a template"),
        ("a.json", '{"vllm": [1, 2', "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_a_note(path: str, text: str, note: str) -> None:
    result = read_config_file(path, text)
    assert result.findings == ()
    assert [problem.message.startswith(note) for problem in result.notes] == [True]


BROKEN = ("vllm serve 'open", 'vllm serve "open', "vllm serve $(open", "vllm \\", "", "\0vllm", "vllm serve <<EOF\nx")


@pytest.mark.parametrize("text", BROKEN)
def test_broken_shell_raises_nothing(text: str) -> None:
    for path in ("a.sh", "Dockerfile", "a.yaml", "a.json"):
        scan_config_file(path, text)
