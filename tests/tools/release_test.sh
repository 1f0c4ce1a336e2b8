#!/usr/bin/env bash
# tools/release.sh with a Bazel that has built small C programs: the folder, the archive and the .deb, their bytes when
# made again, a scorer linked by pkg-config; and a program that asks for too new a glibc or for a library of the build's
# machine.
set -uo pipefail

tools=$PWD/tools
work=$TEST_TMPDIR
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

mkdir --parents "$work"/{path,bin} "$work/tree"/{tools,configs/slurm,docs,trainer/score}
cp --dereference "$tools"/{release,check_symbols,environment,install_arrow}.sh "$work/tree/tools/"
cd "$work/tree" || exit 1
echo 1.2.3 >VERSION
touch README.md CHANGELOG.md LICENSE docs/page.md configs/{a.flags,BUILD.bazel} configs/slurm/train.sbatch
echo 'int elastor_open(void);' >trainer/score/elastor_score.h
cat >"$work/path/bazel" <<FAKE
#!/bin/sh
echo "\$@" >>"$work/called"
[ "\$1" != info ] || echo "$work/bin"
FAKE
chmod +x "$work/path/bazel"
export PATH=$work/path:$PATH

# compiled PATH OPTION...: compiles stdin.
compiled() {
  mkdir --parents "$work/bin/$(dirname "$1")"
  gcc -x c - -o "$work/bin/$1" "${@:2}" || fail "gcc $1"
}
for program in trainer/trainer trainer/prepare/prepare trainer/serve/elastor_serve launcher/{launcher,comparison/comparison} \
  launcher/{conditioning/conditioning,scaling_law/scaling_law,spectra_report/spectra_report}; do
  compiled $program <<<'int main(void) { return 7; }'
done
for abi in openmpi mpich; do
  compiled collective/libelastor_$abi.so -shared -fPIC <<<'int elastor_mpi_part;'
done
compiled trainer/score/shared/libelastor_score.so -shared -fPIC -Wl,-soname,libelastor_score.so.1,--no-as-needed \
  -l:libglog.so.1 -l:libpthread.so.0 '-Wl,-rpath,$ORIGIN/elastor,--disable-new-dtags' \
  <<<'int elastor_open(void) { return 5; }'

# Arrow's library is installed, so that nothing is fetched.
export XDG_CACHE_HOME=$work/cache
arrow=cache/elastor/arrow
mkdir --parents "$work/$arrow/lib"
touch "$work/$arrow/LICENSE.txt"
sed --quiet 's/^hash=//p' tools/install_arrow.sh >"$work/$arrow/hash"
compiled ../$arrow/lib/libarrow.so.1 -shared -fPIC -Wl,-soname,libarrow.so.1 <<<'int arrow_open(void) { return 3; }'
compiled trainer/data/arrow/libelastor_arrow.so -shared -fPIC "-L$work/$arrow/lib" -Wl,--no-as-needed -l:libarrow.so.1 \
  '-Wl,-rpath,$ORIGIN' <<<'int elastor_arrow_part;'

release() { bash tools/release.sh "$@" >"$work/log" 2>&1; }
release "$work/first" || fail "release: $(<"$work/log")"
grep --quiet -- '--config=release.*//trainer/prepare:prepare' "$work/called" || fail "Bazel: $(<"$work/called")"
name=elastor-1.2.3-$(uname --machine)
root=$work/first/$name
for file in bin/{trainer,launcher} programs/collective/libelastor_{openmpi,mpich}.so programs/{trainer/prepare/prepare,launcher/comparison/comparison} VERSION \
  programs/trainer/data/arrow/lib{elastor_arrow.so,arrow.so.1} licenses/arrow docs/page.md configs/a.flags configs/slurm/train.sbatch include/elastor_score.h licenses/{elastor,libprotobuf-dev}; do
  [[ -e $root/$file ]] || fail "no $file"
done
[[ ! -e $root/configs/BUILD.bazel ]] || fail 'a file of Bazel'
"$root/bin/scaling_law"
[[ $? -eq 7 ]] || fail 'a program does not run'
dpkg-deb --contents "$root.deb" | grep ' ./opt/elastor/programs/trainer/trainer$' >/dev/null || fail 'the .deb'
[[ $(dpkg-deb --field "$root.deb" Depends) == *'libstdc++6 (>= 12)'* && $(dpkg-deb --field "$root.deb" Installed-Size) -gt 0 ]] ||
  fail "the .deb's fields: $(dpkg-deb --field "$root.deb")"

release "$work/first" && fail 'made over an earlier one'
grep --quiet "$root exists; expected a new folder" "$work/log" || fail "over an earlier one: $(<"$work/log")"
libraries=$(ls "$root/lib/elastor")
[[ $libraries == *libgflags.so.2.2*libglog.so.1*libunwind.so.8* ]] || fail "the library's own: $libraries"
grep --extended-regexp '^lib(c|m|dl|pthread|stdc\+\+|gcc_s)\.so' <<<"$libraries" && fail "the host's libraries"
[[ $(ldd "$root/lib/libelastor_score.so.1") == *"libgflags.so.2.2 => $root/lib/elastor/"* ]] ||
  fail "other libraries are found"
# Another second, another umask.
find . -exec touch {} +
(umask 077 && release "$work/second") || fail "again: $(<"$work/log")"
for file in "$name".{tar.gz,deb}; do cmp "$work/first/$file" "$work/second/$file" || fail "other bytes: $file"; done

# Unpacked elsewhere, the library is found.
tar --extract --file="$root.tar.gz" --directory="$work"
export PKG_CONFIG_PATH=$work/$name/lib/pkgconfig
[[ $(pkg-config --modversion elastor_score) == 1.2.3 ]] || fail 'pkg-config'
# The libraries of libraries are found where the machine has none of them.
[[ $(pkg-config --libs elastor_score) == *-rpath-link,*/lib/elastor\ * ]] || fail "pkg-config: $(pkg-config --libs elastor_score)"
read -ra options < <(pkg-config --cflags --libs elastor_score)
gcc -x c - -o "$work/scorer" "${options[@]}" \
  <<<$'#include "elastor_score.h"\nint main(void) { return elastor_open(); }' || fail 'a scorer does not link'
LD_LIBRARY_PATH=$work/$name/lib "$work/scorer"
[[ $? -eq 5 ]] || fail 'the scorer does not run'

bash tools/check_symbols.sh "$root" 2.2 >"$work/log" && fail 'any glibc is old enough'
grep --quiet 'trainer: asks for glibc 2.34; expected 2.2 or older' "$work/log" || fail "too new: $(<"$work/log")"
compiled trainer/trainer -Wl,--no-as-needed -lz <<<'int main(void) { return 7; }'
release "$work/third" && fail 'a library is missing'
grep --quiet 'trainer: asks for libz.so.1; expected it in the release' "$work/log" || fail "libz: $(<"$work/log")"
exit $((failures > 0))
