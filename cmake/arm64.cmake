# Cross build for 64-bit Arm with Debian's cross compiler and multiarch libraries; tests run under qemu-aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Without -L: the multiarch C library is found where it is installed, and with the cross compiler's own one a death
# test's fork hangs (qemu 7.2).
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# What scripts/install-deps unpacks there.
list(PREPEND CMAKE_LIBRARY_PATH ${CMAKE_CURRENT_LIST_DIR}/../build/arm64-root/usr/lib/aarch64-linux-gnu)
