"""The settings of a session follow from where it runs."""

from pathlib import Path

from strandline.pipeline.runtime.session import (
    TABLE_SETTINGS,
    SessionOptions,
    is_submitted,
    plan_settings,
)

JARS = [Path("/jars/a.jar"), Path("/jars/b.jar")]


def test_local_session_binds_to_loopback_and_brings_its_jars() -> None:
    settings = plan_settings(SessionOptions("job", Path("/jars")), jars=JARS, submitted=False)
    assert settings["spark.master"] == "local[*]"
    assert settings["spark.jars"] == "/jars/a.jar,/jars/b.jar"
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"
    assert TABLE_SETTINGS.items() <= settings.items()


def test_local_session_makes_no_directory_where_the_user_stands() -> None:
    settings = plan_settings(SessionOptions("job", Path("/jars")), jars=JARS, submitted=False)
    assert Path(settings["spark.sql.warehouse.dir"]).is_dir()


def test_cluster_session_leaves_the_flags_of_one_machine_alone() -> None:
    options = SessionOptions("job", Path("/jars"), master="spark://host:7077")
    settings = plan_settings(options, jars=JARS, submitted=False)
    assert settings["spark.master"] == "spark://host:7077"
    assert "spark.driver.host" not in settings
    assert "spark.sql.shuffle.partitions" not in settings


def test_spark_submit_decides_about_master_and_jars() -> None:
    settings = plan_settings(SessionOptions("job", Path("/jars")), jars=[], submitted=True)
    assert settings == {"spark.app.name": "job", **TABLE_SETTINGS}
    assert is_submitted({"PYSPARK_GATEWAY_PORT": "1234"})
    assert not is_submitted({})


def test_given_settings_override_every_other() -> None:
    options = SessionOptions("job", Path("/jars"), conf={"spark.driver.memory": "4g"})
    settings = plan_settings(options, jars=JARS, submitted=False)
    assert settings["spark.driver.memory"] == "4g"
