"""`strandline pipeline jars`: the jars that jobs need, resolved ahead of time."""

from strandline.pipeline.commands.options import JarsOption, JsonOption
from strandline.pipeline.commands.output import write_json, write_line
from strandline.pipeline.runtime.jars import default_directory, ensure_jars
from strandline.pipeline.runtime.java import find_java
from strandline.pipeline.runtime.resolvers import default_resolvers


def jars(
    *,
    directory: JarsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resolve the jars that the jobs need and print their paths, as for spark-submit's --jars."""
    found = ensure_jars(directory or default_directory(), default_resolvers(find_java()))
    if as_json:
        write_json({"jars": [str(path.absolute()) for path in found]})
        return
    write_line(",".join(str(path.absolute()) for path in found))
