#!/usr/bin/env bash
# Makes a folder, and a .tar.gz of it, that runs on any x86-64 Linux with glibc 2.36 or newer, where
# nothing can be installed: trainer and prepare with the libraries they need, Open MPI with mpirun,
# and configs/. Not in it: glibc, the NVIDIA driver, and CUDA's libraries, which bin/run finds on
# the host (docs/use/gpus.md).
#
#   tools/bundle.sh [--cpu] [--tests] [--with-cuda-libraries] OUTPUT_DIR
#
#   --cpu                  a build without CUDA
#   --tests                also the device tests, benchmarks and tools/gpu_check.sh
#   --with-cuda-libraries  also libcudart, libcublas, libcublasLt and libnccl (about 1 GB)
#
# BAZEL_STARTUP, BAZEL_OPTIONS: more options for Bazel.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
cd "$(dirname "$0")/.."
source tools/environment.sh

config=cuda
tests=0
cuda_libraries=0
output=
for argument in "$@"; do
  case $argument in
    --cpu) config=cpu ;;
    --tests) tests=1 ;;
    --with-cuda-libraries) cuda_libraries=1 ;;
    -*) output= && break ;;
    *) output=$argument ;;
  esac
done
if [[ -z $output ]]; then
  echo "usage: $0 [--cpu] [--tests] [--with-cuda-libraries] OUTPUT_DIR" >&2
  exit 2
fi
name=elastor-$config-x86_64
root=$output/$name
if [[ -e $root ]]; then
  echo "$0: $root exists" >&2
  exit 2
fi
mkdir -p "$root"/{bin,etc,lib/{fallback,openmpi},libexec,licenses,share}

read -ra startup <<<"${BAZEL_STARTUP:-}"
read -ra options <<<"${BAZEL_OPTIONS:-}"
[[ $config == cpu ]] || options+=(--config=cuda)
run_bazel() { bazel "${startup[@]}" "$@"; }

build_programs() {
  programs=(//trainer:trainer //trainer/prepare:prepare)
  test_programs=()
  if [[ $tests == 1 ]]; then
    mapfile -t test_programs < <(run_bazel query --noshow_progress \
      'attr(tags, "\bdevice\b", kind(cc_test, //tests/...))
       union kind(cc_binary, filter("cuda|device|train_step", //tests/bench/...))')
  fi
  run_bazel build "${options[@]}" "${programs[@]}" "${test_programs[@]}"
}

# Where a label's program is.
built() {
  local path=${1#//}
  echo "$bin/${path/://}"
}

# Files that programs open by their path from the top of the repository lie there in the bundle.
copy_data() {
  local runfiles=$1 file
  [[ -d $runfiles ]] || return 0
  while read -r file; do
    mkdir -p "$root/$(dirname "$file")"
    cp -L --no-preserve=mode "$runfiles/$file" "$root/$file"
  done < <(cd "$runfiles" && find . -type l \
    \( -name '*.flags' -o -name '*.json' -o -name '*.textproto' \) -printf '%P\n')
}

copy_programs() {
  bin=$(run_bazel info "${options[@]}" bazel-bin 2>/dev/null)
  local label
  for label in "${programs[@]}"; do
    install -m 755 -s "$(built "$label")" "$root/libexec/"
    ln -s run "$root/bin/${label##*:}"
  done
  install -m 755 tools/bundle_run.sh "$root/bin/run"
  cp -r configs "$root/"
  find "$root/configs" -type f ! -name '*.textproto' ! -name '*.flags' -delete
  find "$root/configs" -type d -empty -delete
  [[ $tests == 1 ]] || return 0
  for label in "${test_programs[@]}"; do
    install -D -m 755 -s "$(built "$label")" "$root/libexec/tests/${label##*:}"
    copy_data "$(built "$label").runfiles/elastor"
  done
  # What tools/gpu_check.sh expects to run.
  printf '%s\n' "${test_programs[@]##*:}" | grep '_test$' >"$root/libexec/tests/device_tests"
  mkdir -p "$root/tools"
  cp -r tools/gpu_check.sh tools/gpu_check_table.py tools/peers "$root/tools/"
}

# What mpirun and MPI_Init load by name, for shared memory and TCP. Left out: other networks, MPI's
# files, and OpenSHMEM; nothing here uses them.
copy_mpi() {
  local components program pmix
  mpi_path() { ompi_info --parsable --path "$1" | sed -n "s/^path:$1://p" | head -n 1; }
  components=$(mpi_path pkglibdir)
  cp "$components"/mca_*.so "$root/lib/openmpi/"
  (cd "$root/lib/openmpi" && rm -f mca_{btl_o,mtl_,pml_ucx,pml_cm,atomic_,scoll_,memheap_,spml_}* \
    mca_{sshmem_,io_,fs_,fbtl_,fcoll_,sharedfp_,vprotocol_,pmix_flux,schizo_flux}* \
    mca_osc_* mca_*monitoring*)
  cp -rL "$(mpi_path pkgdatadir)" "$root/share/openmpi"
  cp -rL "$(mpi_path sysconfdir)" "$root/etc/openmpi"
  for program in mpirun orted; do
    install -m 755 -s "$(readlink -f "$(command -v $program)")" "$root/libexec/$program"
    ln -s run "$root/bin/$program"
  done
  pmix=$(readlink -f "$(ldd "$components/mca_pmix_ext3x.so" | awk '/libpmix/ { print $3 }')")
  cp -rL "$(dirname "$pmix")/pmix" "$root/lib/pmix"
  cp -rL "$(dirname "$pmix")/../share/pmix" "$root/share/pmix"
}

# The libraries that all of that is linked with.
libraries() {
  find "$root/libexec" "$root/lib" -type f \( -perm -u+x -o -name '*.so' \) -exec ldd {} + |
    awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u
}

copy_libraries() {
  local library path package
  while read -r library; do
    case ${library##*/} in
      libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libutil.so* | libresolv.so*)
        continue ;; # glibc's
      libcuda.so*) continue ;; # the driver's
      libcudart.so* | libcublas.so* | libcublasLt.so* | libnccl.so*)
        echo "${library##*/}" >>"$root/lib/cuda-libraries"
        [[ $cuda_libraries == 1 ]] || continue ;;
    esac
    case ${library##*/} in
      libstdc++.so* | libgcc_s.so*) cp -L --no-preserve=mode "$library" "$root/lib/fallback/" ;;
      *) cp -L --no-preserve=mode "$library" "$root/lib/" ;;
    esac
    for path in "$library" "/usr$library" "$(readlink -f "$library")"; do
      package=$(dpkg-query --search "$path" 2>/dev/null |
        head -n 1 | cut --delimiter=: --fields=1 || true)
      [[ -n $package ]] || continue
      cp -L "/usr/share/doc/$package/copyright" "$root/licenses/$package"
      break
    done
  done < <(libraries)
  cp -L /usr/share/doc/openmpi-bin/copyright "$root/licenses/openmpi-bin"
  cp LICENSE "$root/licenses/elastor"
}

build_programs
copy_programs
copy_mpi
copy_libraries
tar --create --gzip --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 \
  --directory="$output" --file="$root.tar.gz" "$name"
echo "$root: $(du --summarize --block-size=1M "$root" | cut --fields=1) MiB"
echo "$root.tar.gz: $(du --summarize --apparent-size --block-size=1M "$root.tar.gz" |
  cut --fields=1) MiB"
