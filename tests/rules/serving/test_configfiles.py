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
    serve = "CMD uvicorn app:app --host 0.0.0.0 --reload\n"
    assert found("Dockerfile", "FROM nvidia/cuda:12.8.0\n" + serve) == [("AWP808", 2)]
    assert found("Dockerfile", "FROM python\n" + serve) == []  # nothing says that it runs a model
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


@pytest.mark.parametrize(
    "text",
    [
        "command: {{ .Values.vllm }} --enforce-eager\n",
        "{% if vllm %}\ncommand: vllm serve m --enforce-eager\n{% endif %}\n",
        "image: vllm/vllm-openai\nargs:\n{{- range .extra }}\n- --enforce-eager\n{{- end }}\n",
        "image: vllm/vllm-openai\nargs: [{{ args }}, --enforce-eager\n",
    ],
)
def test_templates_are_left_alone(text: str) -> None:
    result = read_config_file("a.yaml", text)
    assert result.findings == () and result.notes == ()


def test_substitutions_within_a_value_are_unknown() -> None:
    text = """
        services:
          llm:
            image: vllm/vllm-openai:${{ vars.TAG }}
            command: ["--max-num-seqs", "{{ seqs }}", "--enforce-eager"]
        """
    assert found("compose.yaml", text) == [("AWP804", 4)]


def test_models_and_values_of_operators() -> None:
    text = """
        kind: Model
        spec:
          engine: VLLM
          args:
            - --enforce-eager
            - --max-num-seqs=1
        """
    assert found("model.yaml", text) == [("AWP804", 5), ("AWP805", 6)]
    text = """
        modelSpec:
          - name: m
            vllmConfig:
              enablePrefixCaching: false
              maxModelLen: 1024
              extraArgs: ["--enforce-eager"]
        """
    assert found("values.yaml", text) == [("AWP804", 6), ("AWP806", 4)]


def test_shared_devices_may_have_little_memory() -> None:
    text = """
        modelSpec:
          - requestGPU: 0.5
            vllmConfig: {maxModelLen: 1024, gpuMemoryUtilization: 0.4}
          - requestGPU: 1
            vllmConfig: {maxModelLen: 1024, gpuMemoryUtilization: 0.4}
        """
    assert found("values.yaml", text) == [("AWP805", 5)]


def test_reasons_above_the_key_of_a_list() -> None:
    text = """
        kind: Model
        spec:
          engine: VLLM
          # graph capture is unreliable with this driver,
          # so enforce-eager is on
          args:
            - --served-model-name
            - m
            - --enforce-eager
        """
    assert found("model.yaml", text) == []
    assert low("model.yaml", text) == ["AWP804"]


@pytest.mark.parametrize("comment", ["# start the server now", "# the vLLM server for chat"])
def test_what_a_comment_must_say_above_a_command(comment: str) -> None:
    assert found("serve.sh", f"{comment}\nvllm serve m \\\n  --enforce-eager\n") == [("AWP804", 3)]
    assert found("serve.sh", "# enforce eager since capture fails\nvllm serve m \\\n  --enforce-eager\n") == []


def test_devices_without_graphs() -> None:
    text = """
        services:
          llm:
            image: ghcr.io/huggingface/text-generation-inference:3.0-intel-cpu
            command: --model-id m --cuda-graphs 0
        """
    assert found("compose.yaml", text) == []
    assert found("compose.yaml", text.replace("-intel-cpu", "")) == [("AWP804", 4)]
    assert found("intel/cpu/xeon/compose.yaml", text.replace("-intel-cpu", "")) == []
    assert found("serve.sh", "vllm serve m --device xpu --enforce-eager\n") == []


def test_settings_of_newer_engines() -> None:
    text = """
        vllm serve m -O0
        vllm serve --enforce-eager my/model
        vllm serve m --compilation-config '{"cudagraph_mode": "NONE"}'
        sglang serve --model-path m --cuda-graph-backend-decode disabled
        vllm serve m -O3 --optimization-level 2 --compilation-config '{"cudagraph_mode": "FULL"}'
        """
    assert found("serve.sh", text) == [("AWP804", 1), ("AWP804", 2), ("AWP804", 3), ("AWP804", 4)]
    text = "max_batch_size: 64\nmax_num_tokens: 8192\ncuda_graph_config: null\n"
    text += "kv_cache_config: {free_gpu_memory_fraction: 0.2}\n"
    assert found("extra.yaml", text) == [("AWP804", 3), ("AWP805", 4)]
    nested = "max_batch_size: 64\nmax_num_tokens: 8192\ncuda_graph_config: {max_batch_size: 1}\n"
    assert found("extra.yaml", nested) == []


def test_engines_that_take_all_devices() -> None:
    text = """
        services:
          tgi:
            image: ghcr.io/huggingface/text-generation-inference:3.0
            command: --model-id m
            environment: {NUM_SHARD: "2", PREFIX_CACHING: "0"}
            deploy: {resources: {reservations: {devices: [{count: "4"}]}}}
        """
    assert found("compose.yaml", text) == [("AWP806", 5), ("AWP809", 4)]
    assert found("compose.yaml", text.replace('NUM_SHARD: "2", ', "")) == [("AWP806", 5)]


def test_suppression_of_a_command_of_many_lines() -> None:
    text = "# awp: ignore[AWP804] measured\nvllm serve m \\\n  --enforce-eager\n"
    text += "# awp: off[AWP805]\nvllm serve m --max-num-seqs 1\n"
    assert [f.suppressed for f in scan_config_file("serve.sh", text)] == ["measured", ""]


def test_engines_that_are_split() -> None:
    text = """
        vllm serve m --enforce-eager --no-enable-prefix-caching --ec-transfer-config '{"ec_role": "ec_producer"}'
        vllm serve m --enforce-eager --ec-transfer-config '{"ec_role": "'"$ROLE"'"}'
        python disagg_proxy.py
        """
    assert found("serve.sh", text) == [("AWP804", 2)]
    assert low("serve.sh", text) == ["AWP806"]
