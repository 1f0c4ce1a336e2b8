# For the emulation: shared memory is garbage when a block starts.
s/__shared__\s+([^;]*[ *>])([A-Za-z_][A-Za-z_0-9]*)(\s*\[[^];]*\])*\s*;/& ::elastor::cuda::emulation::PoisonShared(\2);/
