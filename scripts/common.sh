# What the scripts beside begin with; for `.`, not to be run. They go to the project's root, find
# its commands, work in the folder $1, and print every command before it runs, on standard error:
# what it prints may go to a file.
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
work=${1:-.nestor}
run() { printf '\033[2m$ %s\033[0m\n' "$*" >&2; "$@"; }
