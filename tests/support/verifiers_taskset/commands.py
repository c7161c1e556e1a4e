"""Runs commands of verifiers one after another in one process, which imports it once: each line of
the standard input is the JSON list of a command's name and arguments. With the argument
--without-openenv it fails if one of them has imported OpenEnv."""

import json
import sys
from importlib.metadata import entry_points

programs = {program.name: program for program in entry_points(group="console_scripts")}
for line in sys.stdin:
    name, *arguments = json.loads(line)
    programs[name].load()(arguments)
if "--without-openenv" in sys.argv and "openenv" in sys.modules:
    sys.exit("OpenEnv was imported")
