#!/usr/bin/env bash
# Makes a release: a folder, a .tar.gz and, without options, a .deb of it, for any Linux of this machine (x86-64 or
# aarch64) with glibc 2.34 or newer (with MPI 2.36). Programs, libelastor_score, configs, docs and licenses are in it;
# glibc, MPI and the NVIDIA driver are not. The trainer loads Open MPI or MPICH where one starts it. libelastor_score also
# takes libstdc++ from the host. The same commit gives the same bytes on the same system (docs/use/install.md).
#
#   tools/release.sh [--with-mpi] [--cuda [--with-cuda-libraries] [--tests]] OUTPUT_DIR
#
#   --with-mpi             also Open MPI with mpirun; all programs then start through bin/run
#   --cuda                 a build with CUDA, whose libraries bin/run finds on the host (docs/use/gpus.md)
#   --with-cuda-libraries  also libcudart, libcublas, libcublasLt and libnccl (about 1 GB)
#   --tests                also the device tests, benchmarks and tools/gpu_check.sh
#
# BAZEL_STARTUP, BAZEL_OPTIONS: more options for Bazel. `tools/cross_aarch64.sh release` sets what a release for aarch64
# needs on x86-64: ELASTOR_MACHINE, its name; ELASTOR_STRIP and ELASTOR_LDD, programs.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
cd "$(dirname "$0")/.."
source tools/environment.sh

kind=cpu mpi=0 tests=0 cuda_libraries=0 output=
for argument in "$@"; do
  case $argument in
    --with-mpi) mpi=1 ;;
    --cuda) kind=cuda ;;
    --tests) tests=1 ;;
    --with-cuda-libraries) cuda_libraries=1 ;;
    -*) output= && break ;;
    *) output=$argument ;;
  esac
done
if [[ -z $output || ($kind == cpu && $tests$cuda_libraries != 00) ]]; then
  echo "usage: $0 [--with-mpi] [--cuda [--with-cuda-libraries] [--tests]] OUTPUT_DIR" >&2
  exit 2
fi
version=$(<VERSION)
machine=${ELASTOR_MACHINE:-$(uname --machine)}
name=elastor-$version-$machine
[[ $kind == cpu ]] || name+=-cuda
[[ $mpi == 0 ]] || name+=-mpi
root=$output/$name
if [[ -e $root ]]; then
  echo "$0: $root exists; expected a new folder" >&2
  exit 2
fi
umask 022
mkdir -p "$root"/{bin,include,lib/pkgconfig,libexec,licenses,programs}

tools/install_arrow.sh
read -ra startup <<<"${BAZEL_STARTUP:-}"
read -ra options <<<"${BAZEL_OPTIONS:-}"
[[ $kind == cpu ]] || options+=(--config=cuda)
stripped() { install -s --strip-program="${ELASTOR_STRIP:-strip}" "$@"; }
libraries_of() { "${ELASTOR_LDD:-ldd}" "$@"; }
run_bazel() { bazel "${startup[@]}" "$@"; }

# Paths below bazel-bin, where the programs lie as in programs/.
programs=(trainer/trainer trainer/prepare/prepare trainer/serve/elastor_serve launcher/launcher)
for program in comparison conditioning scaling_law spectra_report; do programs+=("launcher/$program/$program"); done
mpi_parts=(collective/libelastor_{openmpi,mpich}.so)
arrow=${XDG_CACHE_HOME:-$HOME/.cache}/elastor/arrow
arrow_part=trainer/data/arrow/libelastor_arrow.so
library=trainer/score/shared/libelastor_score.so
labels() { for path in "$@"; do echo "//${path%/*}:${path##*/}"; done; }

build() {
  run_bazel build "${options[@]}" "$@"
  bin=$(run_bazel info "${options[@]}" bazel-bin 2>/dev/null)
}

# Files that programs open by their path from the top of the repository lie there in the release.
copy_data() {
  local runfiles=$1 file
  [[ -d $runfiles ]] || return 0
  while read -r file; do
    mkdir -p "$root/$(dirname "$file")"
    cp -L --no-preserve=mode "$runfiles/$file" "$root/$file"
  done < <(cd "$runfiles" && find . -type l \
    \( -name '*.flags' -o -name '*.json' -o -name '*.textproto' \) -printf '%P\n')
}

make_programs() {
  local path label file wanted test_programs=()
  if [[ $tests == 1 ]]; then
    mapfile -t test_programs < <(run_bazel query --noshow_progress \
      'attr(tags, "\bdevice\b", kind(cc_test, //tests/...))
       union kind(cc_binary, filter("cuda|device|train_step", //tests/bench/...))')
  fi
  mapfile -t wanted < <(labels "${programs[@]}")
  build --config=release "${wanted[@]}" "${test_programs[@]}"
  for path in "${programs[@]}"; do
    stripped -D -m 755 "$bin/$path" "$root/programs/$path"
    if [[ $kind$mpi == cpu0 ]]; then
      ln -s "../programs/$path" "$root/bin/${path##*/}"
    else
      ln -s "../programs/$path" "$root/libexec/${path##*/}"
      ln -s run "$root/bin/${path##*/}"
    fi
  done
  [[ $kind$mpi == cpu0 ]] || install -m 755 tools/release_run.sh "$root/bin/run"
  [[ $tests == 1 ]] || return 0
  for label in "${test_programs[@]}"; do
    file=${label#//}
    file=$bin/${file/://}
    stripped -D -m 755 "$file" "$root/libexec/tests/${label##*:}"
    copy_data "$file.runfiles/elastor"
  done
  # What tools/gpu_check.sh expects to run.
  printf '%s\n' "${test_programs[@]##*:}" | grep '_test$' >"$root/libexec/tests/device_tests"
  mkdir -p "$root/tools"
  cp -r tools/gpu_check.sh tools/gpu_check_table.py tools/peers "$root/tools/"
}

# Debian's archives cannot be part of a shared library, so their shared objects lie beside it.
make_libraries() {
  local needed path shared
  mapfile -t shared < <(labels $library $arrow_part "${mpi_parts[@]}")
  build "${shared[@]}"
  # Arrow's library beside the part that loads it.
  stripped -D -m 644 "$bin/$arrow_part" "$root/programs/$arrow_part"
  stripped -m 644 "$arrow"/lib/*.so.* "$root/programs/${arrow_part%/*}/"
  cp "$arrow/LICENSE.txt" "$root/licenses/arrow"
  for path in "${mpi_parts[@]}"; do stripped -D -m 644 "$bin/$path" "$root/programs/$path"; done
  ln -s ../programs/collective "$root/libexec/"
  stripped -m 644 "$bin/$library" "$root/lib/libelastor_score.so.1"
  while read -r needed; do
    mkdir -p "$root/lib/elastor"
    cp -L --no-preserve=mode "$needed" "$root/lib/elastor/"
  done < <(libraries_of "$bin/$library" | awk '$2 == "=>" && $1 !~ /^lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so/ { print $3 }')
  ln -s libelastor_score.so.1 "$root/lib/libelastor_score.so"
  install -m 644 trainer/score/elastor_score.h "$root/include/"
  cat >"$root/lib/pkgconfig/elastor_score.pc" <<PC
prefix=\${pcfiledir}/../..
libdir=\${prefix}/lib

Name: elastor_score
Description: Scores rows by a model that Elastor has trained
Version: $version
Libs: -L\${libdir} -Wl,-rpath-link,\${libdir}/elastor -lelastor_score
Cflags: -I\${prefix}/include
PC
}

copy_texts() {
  cp -r configs docs README.md CHANGELOG.md VERSION LICENSE "$root/"
  find "$root/configs" -type f ! -name '*.textproto' ! -name '*.flags' ! -name '*.sbatch' ! -name '*.md' -delete
  find "$root/configs" -type d -empty -delete
  cp LICENSE "$root/licenses/elastor"
  # Those of what is linked in, by the packages that own the archives and headers. What a distribution does not need is not
  # installed there.
  local package
  for package in libboost-dev libeigen3-dev libfast-float-dev libgflags-dev libgoogle-glog-dev libicu-dev liblzma-dev \
    libonnx-dev libprotobuf-dev libunwind-dev libxml2-dev libxxhash-dev libzstd-dev nlohmann-json3-dev zlib1g-dev; do
    dpkg-query --status "$package" >/dev/null 2>&1 || continue
    cp -L "/usr/share/doc/$package/copyright" "$root/licenses/$package"
  done
  cp -L "/usr/share/doc/libstdc++6/copyright" "$root/licenses/libstdc++6"
}

# What mpirun and MPI_Init load by name, for shared memory and TCP. Left out: other networks, MPI's files, and
# OpenSHMEM; nothing here uses them.
copy_mpi() {
  local components program pmix
  mpi_path() { ompi_info --parsable --path "$1" | sed -n "s/^path:$1://p" | head -n 1; }
  components=$(mpi_path pkglibdir)
  mkdir -p "$root"/{etc,lib/openmpi,share}
  cp "$components"/mca_*.so "$root/lib/openmpi/"
  cp -L --no-preserve=mode "$(mpi_path libdir)/libmpi.so" "$root/lib/libmpi.so.40"
  (cd "$root/lib/openmpi" && rm -f mca_{btl_o,mtl_,pml_ucx,pml_cm,atomic_,scoll_,memheap_,spml_}* \
    mca_{sshmem_,io_,fs_,fbtl_,fcoll_,sharedfp_,vprotocol_,pmix_flux,schizo_flux}* \
    mca_osc_* mca_*monitoring*)
  cp -rL "$(mpi_path pkgdatadir)" "$root/share/openmpi"
  cp -rL "$(mpi_path sysconfdir)" "$root/etc/openmpi"
  for program in mpirun orted; do
    stripped -m 755 "$(readlink -f "$(command -v $program)")" "$root/libexec/$program"
    ln -s run "$root/bin/$program"
  done
  pmix=$(readlink -f "$(ldd "$components/mca_pmix_ext3x.so" | awk '/libpmix/ { print $3 }')")
  cp -rL "$(dirname "$pmix")/pmix" "$root/lib/pmix"
  cp -rL "$(dirname "$pmix")/../share/pmix" "$root/share/pmix"
  cp -L /usr/share/doc/openmpi-bin/copyright "$root/licenses/openmpi-bin"
}

# The shared libraries that all of that is linked with, MPI's only with MPI.
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
      *) [[ $mpi == 1 ]] || continue ;;
    esac
    cp -L --no-preserve=mode "$library" "$root/lib/"
    for path in "$library" "/usr$library" "$(readlink -f "$library")"; do
      package=$(dpkg-query --search "$path" 2>/dev/null | head -n 1 | cut --delimiter=: --fields=1 || true)
      [[ -n $package ]] || continue
      dpkg-query --status "$package" >/dev/null 2>&1 || continue
      cp -L "/usr/share/doc/$package/copyright" "$root/licenses/$package"
      break
    done
  done < <(find "$root" -type f \( -perm -u+x -o -name '*.so*' \) -exec ldd {} + 2>/dev/null |
    awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u)
}

make_deb() {
  local tree=$output/deb
  mkdir -p "$tree/DEBIAN" "$tree/opt"
  cp -r "$root" "$tree/opt/elastor"
  local architecture=amd64
  [[ $machine != aarch64 ]] || architecture=arm64
  cat >"$tree/DEBIAN/control" <<CONTROL
Package: elastor
Version: $version
Architecture: $architecture
Maintainer: Elastor
Installed-Size: $(find "$root" -type f -printf '%s\n' | awk '{ bytes += $1 } END { printf "%d", bytes / 1024 }')
Depends: libc6 (>= 2.34), libgcc-s1, libstdc++6 (>= 12)
Recommends: openmpi-bin | mpich
Section: science
Priority: optional
Description: distributed trainer of CTR and recommendation models
 Everything lies below /opt/elastor.
CONTROL
  dpkg-deb --root-owner-group --build "$tree" "$output/$name.deb" >/dev/null
  rm -r "$tree"
}

# Debian 12's libevent, which Open MPI needs, asks for 2.36.
glibc=2.34
[[ $mpi == 0 ]] || glibc=2.36
# Files have the time of the commit.
commit_time=$(git -c safe.directory="$PWD" log -1 --format=%ct 2>/dev/null) || commit_time=0
export SOURCE_DATE_EPOCH=$commit_time
make_programs
make_libraries
copy_texts
[[ $mpi == 0 ]] || copy_mpi
[[ $kind$mpi == cpu0 ]] || copy_libraries
find "$output/$name" -exec touch --no-dereference --date="@$commit_time" {} +
tools/check_symbols.sh "$root" "$glibc"
tar --create --sort=name --owner=0 --group=0 --numeric-owner --directory="$output" "$name" |
  gzip --no-name --best >"$root.tar.gz"
made=("$root" "$root.tar.gz")
if [[ $kind$mpi == cpu0 ]]; then
  make_deb
  made+=("$root.deb")
fi
for path in "${made[@]}"; do
  echo "$path: $(du --summarize --apparent-size --block-size=1M "$path" | cut --fields=1) MiB"
done
