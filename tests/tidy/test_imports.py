"""No file imports itself by way of others, imports for type checkers included. STYLE, "Rooms"."""

from graphlib import CycleError, TopologicalSorter

import grimp


def test_no_file_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph("strandline", exclude_type_checking_imports=False)
    imports = {
        module: graph.find_modules_directly_imported_by(module) - {module}
        for module in graph.modules
    }
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        raise AssertionError(f"an import cycle: {' -> '.join(error.args[1])}") from None
