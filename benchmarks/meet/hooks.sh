#!/usr/bin/env bash
# The hooks of .pre-commit-hooks.yaml, installed by pre-commit from this checkout's last commit and run on a scratch
# repository. Needs pre-commit, and a network for pip.
#     benchmarks/meet/hooks.sh
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
export PRE_COMMIT_HOME="$scratch/home"
git clone -q --no-local "$source" "$scratch/hooks"
mkdir "$scratch/project" && cd "$scratch/project"
git init -q -b main
cp -r "$source/corpus/apps/chat/." .
rm -rf __pycache__ ./*/__pycache__
cat > .pre-commit-config.yaml <<YAML
repos:
  - repo: $scratch/hooks
    rev: $(git -C "$scratch/hooks" rev-parse HEAD)
    hooks:
      - id: awp-lint
      - id: awp-lint-fix
YAML
git add . && git commit -q -m "a project with old findings"
pre-commit install > /dev/null

show() { sed "s#$scratch#SCRATCH#g; s#$source#CHECKOUT#g"; }
commit() {
  echo "--- $1"
  git add -A
  if git commit -q -m "$1" 2>&1 | grep -v '^\[INFO\]' | show; then :; fi
  if [ -z "$(git status --porcelain)" ]; then echo "=> committed"; else echo "=> refused"; fi
}
echo "words" >> README.md
commit "no Python file: the hooks do not run"
printf '\n\nUNUSED = 1\n' >> chatserve/config.py
commit "a change beside old findings: passes"
python3 - <<'PYTHON'
from pathlib import Path
path = Path("chatserve/cache.py")
text = path.read_text()
path.write_text(text.replace("        end = int(positions[-1]) + 1\n", "        end = int(positions[-1].item()) + 1\n"))
PYTHON
touch scratch_notes.py
commit "a new wait for the device: refused"
git checkout -q -- . && git reset -q && git checkout -q -- .
printf 'import torch\n' > chatserve/extra.py
commit "clean again: passes"
