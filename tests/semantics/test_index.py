"""Names, imports and classes across files."""

from __future__ import annotations

from typing import Any


def test_names_are_followed_to_the_definition(link: Any) -> None:
    project = link(
        {
            "pkg/__init__.py": "from .core import *\nfrom . import tools as helpers\nfrom .core import Model as Public",
            "pkg/core.py": "__all__ = ['Model']\nclass Model: ...\nclass Hidden: ...\nAlias = Model",
            "pkg/tools/__init__.py": "from .deep.inner import work",
            "pkg/tools/deep/__init__.py": "",
            "pkg/tools/deep/inner.py": "from ...core import Alias as A\ndef work(): ...",
            "app.py": "from pkg import Model, helpers, Public\nimport numpy as np",
        }
    )
    assert project.canonical("pkg.Model") == "pkg.core.Model"
    assert project.canonical("pkg.Public") == "pkg.core.Model"
    assert project.canonical("pkg.core.Alias") == "pkg.core.Model"
    assert project.canonical("pkg.Hidden") == "pkg.Hidden"  # not exported
    assert project.canonical("pkg.helpers.work") == "pkg.tools.deep.inner.work"
    assert project.canonical("app.helpers.work") == "pkg.tools.deep.inner.work"
    assert project.canonical("pkg.tools.deep.inner.A") == "pkg.core.Model"
    assert project.canonical("app.np.zeros") == "numpy.zeros"
    assert project.is_class("pkg.Model") and project.is_function("app.helpers.work")
    assert not project.is_function("numpy.zeros")


def test_type_checking_and_lazy_modules(link: Any) -> None:
    project = link(
        {
            "lib/__init__.py": """
                from typing import TYPE_CHECKING
                if TYPE_CHECKING:
                    from .models import *
                else:
                    import sys
                    sys.modules[__name__] = _LazyModule(__name__, globals()["__file__"], {})
                """,
            "lib/models/__init__.py": "from .llama import *",
            "lib/models/llama/__init__.py": "from .modeling import *",
            "lib/models/llama/modeling.py": "class Llama: ...\n__all__ = ['Llama']",
        }
    )
    assert project.canonical("lib.Llama") == "lib.models.llama.modeling.Llama"


def test_scripts_import_their_neighbours(link: Any) -> None:
    project = link({"jobs/run.py": "from util import go\ngo()", "jobs/util.py": "def go(): ...", "other/x.py": ""})
    assert project.canonical("jobs.run.go") == "jobs.util.go"


def test_import_cycles_end(link: Any) -> None:
    project = link(
        {
            "a.py": "from b import *\nfrom b import y\ny2 = y",
            "b.py": "from c import *\nfrom a import x\ny = x",
            "c.py": "from a import *\ndef z(): ...",
        }
    )
    assert project.canonical("a.z") == "c.z"
    assert project.canonical("b.z") == "c.z"
    assert project.canonical("a.nothing") == "a.nothing"


def test_a_name_behind_a_cycle_is_found_from_every_side(link: Any) -> None:
    sources = {"a.py": "from b import *\nfrom c import *", "b.py": "from a import *", "c.py": "def x(): ..."}
    for first, second in (("a.x", "b.x"), ("b.x", "a.x")):
        project = link(sources)
        assert (project.canonical(first), project.canonical(second)) == ("c.x", "c.x")


def test_methods_through_the_hierarchy(link: Any) -> None:
    project = link(
        {
            "base.py": "import torch.nn as nn\nclass Base(nn.Module):\n    def run(self): ...\n    def stop(self): ...",
            "model.py": "from base import Base\nclass Mixin:\n    def stop(self): ...\nclass Model(Mixin, Base): ...",
        }
    )
    assert project.method("model.Model", "run") == "base.Base.run"
    assert project.method("model.Model", "stop") == "model.Mixin.stop"
    assert project.method("model.Model", "nothing") is None
    assert project.bases("model.Model") == {"model.Model", "model.Mixin", "base.Base", "torch.nn.Module"}
    assert project.bases("numpy.ndarray") == {"numpy.ndarray"}


def test_inheritance_cycles_end(link: Any) -> None:
    project = link({"m.py": "class A(B):\n    def f(self): ...\nclass B(C): ...\nclass C(A): ...\nclass D(D): ..."})
    assert project.method("m.C", "f") == "m.A.f"
    assert project.bases("m.B") == {"m.A", "m.B", "m.C"}
    assert project.bases("m.D") == {"m.D"}


def test_two_files_with_one_module_name(link: Any) -> None:
    project = link({"x/m.py": "def f(): ...", "y/m.py": "def f(): ...", "x/use.py": "from m import f"})
    assert project.canonical("x.use.f") == "x.m.f"
