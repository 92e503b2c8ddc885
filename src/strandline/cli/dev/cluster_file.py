"""DIR/cluster.json, and the files of each broker beneath DIR.

Why:    a cluster starts again with the same ports, ids and data.
How:        DIR/cluster.json          what the cluster is
            DIR/broker-1/config.toml  the broker's configuration, rewritten at every start unless
                                      it was edited
            DIR/broker-1/.config.toml.written   its last written text, to detect edits
            DIR/broker-1/data/        its logs and state
            DIR/broker-1/broker.log   its log lines
            DIR/broker-1/broker.pid   its process, while it runs
            DIR/secure/               see `secure_files`
Owns:   the layout of DIR.
Source: design section 10."""

import json
import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.cli.dev.plan import (
    LOOPBACK,
    Plan,
    PlannedBroker,
    format_rtt,
    parse_rtt,
    parse_settings,
)
from strandline.cli.dev.secure_files import SecureFiles
from strandline.config.keys import format_value

FILE_NAME = "cluster.json"
FILE_VERSION = 1
VOTERS_VERSION = 2
"""Of a file that names the controller's voters, for brokers have come or gone."""


@dataclass(frozen=True, slots=True)
class BrokerFiles:
    """Where one broker's files are."""

    directory: Path

    @property
    def config(self) -> Path:
        """Its configuration."""
        return self.directory / "config.toml"

    @property
    def written(self) -> Path:
        """Its configuration as it was written last."""
        return self.directory / ".config.toml.written"

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.directory / "data"

    @property
    def log(self) -> Path:
        """What it says."""
        return self.directory / "broker.log"

    @property
    def pid(self) -> Path:
        """Which process it is."""
        return self.directory / "broker.pid"


@dataclass(frozen=True, slots=True)
class ClusterDirectory:
    """A directory that holds a local cluster, or will."""

    path: Path

    def files(self, broker: PlannedBroker) -> BrokerFiles:
        """The files of one broker."""
        return BrokerFiles(self.path / f"broker-{broker.id}")

    @property
    def secure(self) -> SecureFiles:
        """What a secure cluster and its clients need."""
        return SecureFiles(self.path / "secure")

    @property
    def file(self) -> Path:
        """The file that says what the cluster is."""
        return self.path / FILE_NAME

    def read(self) -> Plan | None:
        """The cluster, or None when there is none yet; raises OperatorError when it cannot be
        read."""
        try:
            text = self.file.read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise OperatorError(f"{self.file}: cannot read: {error.strerror}") from error
        try:
            return _plan_from(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, OperatorError) as error:
            raise OperatorError(
                f"{self.file} is damaged: remove {self.path} and start a new cluster"
            ) from error

    def require(self) -> Plan:
        """The cluster; raises OperatorError when there is none."""
        plan = self.read()
        if plan is None:
            raise OperatorError(
                f"{self.path}: no cluster here; to create one: strandline dev start --dir "
                f"{self.path}"
            )
        return plan

    def write(self, plan: Plan) -> None:
        """Write the cluster down, at once or not at all; raises OperatorError."""
        named = {"voters": list(plan.voter_ids)} if plan.voter_ids else {}
        secure = {"secure": True} if plan.is_secure else {}
        body = {
            "version": VOTERS_VERSION if named else FILE_VERSION,
            "cluster_id": plan.cluster_id,
            "rtt": format_rtt(plan.rtt_ms),
            "settings": plan.settings,
            **named,
            **secure,
            "brokers": [
                {
                    "id": broker.id,
                    "region": broker.region,
                    "kafka_port": broker.kafka_port,
                    "rpc_port": broker.rpc_port,
                }
                for broker in plan.brokers
            ],
        }
        _write(self.file, json.dumps(body, indent=2) + "\n")

    def used_ids(self) -> list[int]:
        """The ids that have a directory here, also of brokers that were removed."""
        names = [one.name.removeprefix("broker-") for one in self.path.glob("broker-*")]
        return [int(one) for one in names if one.isascii() and one.isdigit()]

    def edited(self, plan: Plan) -> list[PlannedBroker]:
        """Brokers whose configuration file was edited since this plan wrote it; raises
        OperatorError."""
        return [one for one in plan.brokers if self._is_edited(plan, one)]

    def write_configs(self, plan: Plan, *, but: Collection[PlannedBroker] = ()) -> None:
        """Write each broker's TOML file; those of the brokers `but` stay as they are."""
        for broker in plan.brokers:
            if broker not in but:
                files = self.files(broker)
                text = self._render(plan, broker)
                # In this order: cut short between the two, the old file counts as changed.
                _write(files.written, text)
                _write(files.config, text)

    def _is_edited(self, plan: Plan, broker: PlannedBroker) -> bool:
        files = self.files(broker)
        present = _read(files.config)
        if present is None:
            return False
        written = _read(files.written)
        if written is None:  # An earlier version has written it.
            written = self._render(plan, broker)
        return present != written

    def _render(self, plan: Plan, broker: PlannedBroker) -> str:
        secure = self.secure if plan.is_secure else None
        return render_config(plan, broker, data=self.files(broker).data, secure=secure)


def render_config(
    plan: Plan, broker: PlannedBroker, *, data: Path, secure: SecureFiles | None = None
) -> str:
    """The TOML text of one broker's configuration; `secure`: the files of a secure cluster."""
    sections: dict[str, dict[str, object]] = {
        "broker": {"id": broker.id, "data_directory": str(data)},
        "broker.labels": {"region": broker.region},
        "cluster": {
            "id": plan.cluster_id,
            "seeds": [f"{voter.id}@{LOOPBACK}:{voter.rpc_port}" for voter in plan.voters],
        },
        "listener": {"kafka_host": LOOPBACK, "kafka_port": broker.kafka_port},
        "rpc": {"host": LOOPBACK, "port": broker.rpc_port},
        "drills": {"enable": True},
    }
    if secure is not None:
        del sections["listener"]
        sections |= secure.sections(broker, has_http=bool(plan.metrics_port(broker)))
    links = [
        f"{peer.id}={milliseconds}"
        for peer in plan.brokers
        if peer != broker and (milliseconds := plan.link_rtt_ms(broker, peer))
    ]
    if links:
        sections["dev"] = {"peer_rtt": links}
    for section, values in plan.settings.items():
        sections.setdefault(section, {}).update(values)
    if metrics_port := plan.metrics_port(broker):
        sections["metrics"]["port"] = metrics_port
    blocks = [
        "\n".join([f"[{section}]", *(f"{name} = {_toml(value)}" for name, value in values.items())])
        for section, values in sections.items()
    ]
    return "\n\n".join(blocks) + "\n"


def _toml(value: object) -> str:
    """A value in TOML; JSON's strings, numbers, booleans and lists of strings are TOML too."""
    return json.dumps(value, ensure_ascii=False)


def _plan_from(body: dict[str, object]) -> Plan:
    """Whatever is wrong with it is a ValueError, KeyError, TypeError or AttributeError."""
    brokers, rtt, settings = body["brokers"], body["rtt"], body["settings"]
    version, voters = body["version"], body.get("voters", [])
    is_known = version == (VOTERS_VERSION if voters else FILE_VERSION)
    if not is_known or not isinstance(brokers, list) or not brokers:
        raise ValueError("another version, or no brokers")
    if not isinstance(rtt, str) or not isinstance(settings, dict) or not isinstance(voters, list):
        raise TypeError("rtt, settings or voters")
    planned = tuple(
        PlannedBroker(
            id=int(one["id"]),
            region=str(one["region"]),
            kafka_port=int(one["kafka_port"]),
            rpc_port=int(one["rpc_port"]),
        )
        for one in brokers
    )
    voter_ids = tuple(int(one) for one in voters)
    plan = Plan(
        cluster_id=str(body["cluster_id"]),
        brokers=planned,
        voter_ids=voter_ids,
        is_secure=body.get("secure") is True,
    )
    assert plan.voters, "each is one of the brokers"
    texts = [
        f"{section}.{name}={format_value(tuple(value) if isinstance(value, list) else value)}"
        for section, values in settings.items()
        for name, value in values.items()
    ]
    return replace(plan, rtt_ms=parse_rtt(rtt, plan.regions), settings=parse_settings(texts))


def _read(path: Path) -> str | None:
    """The text of a file, None if there is none; raises OperatorError."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{path}: cannot read: {error}") from error


def _write(path: Path, text: str) -> None:
    scratch = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_text(text)
        os.replace(scratch, path)
    except OSError as error:
        raise OperatorError(f"{path}: cannot write: {error.strerror}") from error
