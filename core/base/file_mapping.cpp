// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/file_mapping.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mla
{

FileMapping::~FileMapping()
{
    if (m_size > 0)
        ::munmap(m_address, m_size);
}

Status FileMapping::map(const std::filesystem::path& path)
{
    const auto failed = [&](const char* what) {
        return badInput(what + std::generic_category().message(errno), path.string());
    };
    // O_NONBLOCK: opening a pipe would otherwise wait for its writer.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return failed("cannot read: ");
    struct stat info = {};
    Status status;
    if (::fstat(file, &info) != 0)
        status = failed("cannot read: ");
    else if (!S_ISREG(info.st_mode))
        status = badInput("is not a regular file", path.string());
    else if (info.st_size > 0) {
        const auto size = static_cast<std::size_t>(info.st_size);
        void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (address == MAP_FAILED) {
            status = failed("cannot map: ");
        } else {
            m_address = address;
            m_size = size;
        }
    }
    ::close(file);
    return status;
}

} // namespace mla
