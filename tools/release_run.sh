#!/bin/sh
# bin/run of a release with MPI or CUDA (tools/release.sh): runs one of its programs with its libraries. Called by the
# program's name (bin/trainer is a link), or as bin/run PROGRAM [ARGUMENT...] with a path below
# libexec. ELASTOR_RUN_WITH in the environment: a command that is put before the program, such as
# "compute-sanitizer --tool memcheck".
self=$(readlink -f "$0")
root=${self%/bin/run}
program=${0##*/}
if [ "$program" = run ] || [ "$program" = release_run.sh ]; then
  case ${1:-} in
    -h | --help)
      sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$self"
      exit
      ;;
  esac
  program=${1:-}
  [ $# -eq 0 ] || shift
fi
if [ ! -f "$root/libexec/$program" ]; then
  echo "elastor: no program '$program' below $root/libexec" >&2
  exit 2
fi

# Sets `found` to the first of the folders (with colons between) that holds the library.
find_library() {
  found=
  saved=$IFS
  IFS=:
  for directory in $2; do
    if [ -n "$directory" ] && [ -e "$directory/$1" ]; then
      found=$directory
      break
    fi
  done
  IFS=$saved
  [ -n "$found" ]
}

# nvidia/*/lib in the packages of every python3 on PATH, found without importing any.
python_places() {
  IFS=:
  for directory in $PATH; do
    [ -x "$directory/python3" ] || continue
    "$directory/python3" -c '
import glob, os, sys
for root in sys.path:
    if root.endswith("-packages"):
        print(*sorted(glob.glob(os.path.join(root, "nvidia", "*", "lib"))), sep=":", end=":")
' 2>/dev/null
  done
}

# CUDA's libraries: in the release, in what the caller names, in the usual places, in Python's.
path=$root/lib
if [ "$program" != mpirun ] && [ "$program" != orted ] && [ -e "$root/lib/cuda-libraries" ]; then
  places=$root/lib:${LD_LIBRARY_PATH:-}:${CUDA_HOME:+$CUDA_HOME/lib64:$CUDA_HOME/lib}
  places=$places:/usr/local/cuda/lib64:/usr/lib/$(uname --machine)-linux-gnu:/usr/lib64
  asked_python=0
  while read -r library; do
    if ! find_library "$library" "$places" && [ $asked_python = 0 ]; then
      asked_python=1
      places=$places:$(python_places)
      find_library "$library" "$places"
    fi
    if [ -z "$found" ]; then
      echo "elastor: $library: not in this release, LD_LIBRARY_PATH, CUDA_HOME, /usr/local/cuda or" \
        "the packages of python3; install CUDA 13's libraries, or use a release made" \
        "--with-cuda-libraries" >&2
      exit 3
    fi
    case :$path: in
      *:"$found":*) ;;
      *) path=$path:$found ;;
    esac
  done <"$root/lib/cuda-libraries"
fi
export LD_LIBRARY_PATH="$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

# Where the release's Open MPI and PMIx were built for is not where they are.
if [ -e "$root/libexec/mpirun" ]; then
  export OPAL_PREFIX="$root" OPAL_BINDIR="$root/bin" OPAL_LIBDIR="$root/lib"
  export OPAL_PKGLIBDIR="$root/lib/openmpi" OPAL_PKGDATADIR="$root/share/openmpi"
  export OPAL_SYSCONFDIR="$root/etc/openmpi" OMPI_MCA_orte_launch_agent="$root/bin/orted"
  export PMIX_PREFIX="$root" PMIX_LIBDIR="$root/lib" PMIX_PKGLIBDIR="$root/lib/pmix"
  export PMIX_PKGDATADIR="$root/share/pmix"
fi

# mpirun without a way to other hosts refuses even this one unless told to stay.
if [ "$program" = mpirun ] && ! command -v ssh >/dev/null && ! command -v rsh >/dev/null; then
  [ -n "${SLURM_JOB_ID:-}" ] || export OMPI_MCA_plm="${OMPI_MCA_plm:-isolated}"
fi

# shellcheck disable=SC2086 # words
exec ${ELASTOR_RUN_WITH:-} "$root/libexec/$program" "$@"
