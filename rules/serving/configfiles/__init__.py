"""Files that are no Python: shell scripts, Dockerfiles, Compose and Kubernetes files, engine configurations."""

from awp_lint.rules.serving.configfiles.scan import is_config_file, scan_config_file

__all__ = ["is_config_file", "scan_config_file"]
