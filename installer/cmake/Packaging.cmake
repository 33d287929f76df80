# Install rules, and CPack's settings for the .deb and the TGZ. LibTorch is not part of them: bin/ holds
# launchers that find it (installer/package/bin/launcher.sh.in) and start the programs in lib/.
include(GNUInstallDirs)
set(package ${CMAKE_SOURCE_DIR}/installer/package)
set(data ${CMAKE_INSTALL_DATADIR}/mla-draft-workbench)
set(documents ${CMAKE_INSTALL_DATADIR}/doc/mla-draft-workbench)
set(MLA_PACKAGE_CONTACT "MLA Draft Workbench maintainers <maintainers@example.org>"
  CACHE STRING "Maintainer in the .deb: name and address of who publishes it")

# The umask of whoever packs has no say.
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
  GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(readable PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
set(runnable PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)

# install_compressed(FILE DIRECTORY [NAME]): as NAME.gz, the same bytes each time.
function(install_compressed file directory)
  cmake_path(GET file FILENAME name)
  if(ARGC GREATER 2)
    set(name ${ARGV2})
  endif()
  set(archive ${CMAKE_BINARY_DIR}/package/${name}.gz)
  install(CODE "file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/package)
    execute_process(COMMAND gzip -9nc ${file} OUTPUT_FILE ${archive} COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${archive} DESTINATION ${directory} ${readable})
endfunction()

# install_program(NAME): the program, the launcher of the same name, the manual page.
function(install_program name)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "")
  install(TARGETS ${name} RUNTIME DESTINATION lib/mla-draft-workbench)
  install(FILES ${CMAKE_BINARY_DIR}/package/launcher.sh DESTINATION ${CMAKE_INSTALL_BINDIR}
    RENAME ${name} ${runnable})
  install_compressed(${package}/man/${name}.1 ${CMAKE_INSTALL_MANDIR}/man1)
endfunction()

string(REPLACE "." "[.]" LIBTORCH_VERSION_PATTERN "${LibTorch_VERSION}")
configure_file(${package}/bin/launcher.sh.in ${CMAKE_BINARY_DIR}/package/launcher.sh @ONLY)

install_program(mla-draft)
install(FILES ${package}/mla-draft.bash-completion
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME mla-draft ${readable})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/resources/ DESTINATION ${data} FILE_PERMISSIONS
  OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  PATTERN fonts EXCLUDE PATTERN icons EXCLUDE PATTERN __pycache__ EXCLUDE)

# mla-draft-setup and what it stands on.
set(installer ${CMAKE_SOURCE_DIR}/installer)
install(FILES ${package}/bin/mla-draft-setup DESTINATION ${CMAKE_INSTALL_BINDIR} ${runnable})
install_compressed(${package}/man/mla-draft-setup.1 ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${installer}/setup.sh DESTINATION ${data}/installer ${runnable})
install(FILES ${installer}/lib/common.sh ${installer}/lib/debian.sh ${installer}/lib/environments.sh
  DESTINATION ${data}/installer/lib ${readable})
foreach(list libtorch cuda python backends)
  install(FILES ${installer}/requirements-${list}.txt DESTINATION ${data}/installer ${readable})
endforeach()

install(FILES ${package}/copyright DESTINATION ${documents} ${readable})
install_compressed(${CMAKE_SOURCE_DIR}/LICENSE ${documents})
install_compressed(${package}/changelog ${documents})

if(MLA_BUILD_WORKBENCH)
  install_program(mla-workbench)
  install(FILES ${package}/mla-workbench.desktop
    DESTINATION ${CMAKE_INSTALL_DATADIR}/applications ${readable})
  install(FILES ${package}/mla-draft-workbench.xml
    DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages ${readable})
  install(FILES ${package}/org.mla_draft_workbench.Workbench.metainfo.xml
    DESTINATION ${CMAKE_INSTALL_DATADIR}/metainfo ${readable})
  set(icons ${CMAKE_INSTALL_DATADIR}/icons/hicolor)
  install(FILES ${CMAKE_SOURCE_DIR}/resources/icons/mla-draft-workbench.svg
    DESTINATION ${icons}/scalable/apps ${readable})
  foreach(size 16 22 24 32 48 64 128 256)
    install(FILES ${CMAKE_SOURCE_DIR}/resources/icons/hicolor/${size}.png
      DESTINATION ${icons}/${size}x${size}/apps RENAME mla-draft-workbench.png ${readable})
  endforeach()
endif()

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME mla-draft-workbench)
set(CPACK_PACKAGE_VENDOR "The MLA Draft Workbench authors")
set(CPACK_PACKAGE_CONTACT "${MLA_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "GQA to MLA conversion of draft models, and their acceptance")
set(CPACK_PACKAGE_DESCRIPTION
"Speculative decoding lets a small draft model propose tokens that a large
target model checks. This program converts the attention of a draft from
grouped queries (GQA) to multi-head latent attention (MLA), repairs it layer
by layer, and measures how much of the acceptance came back.
.
It brings mla-draft for the command line and mla-workbench, a window in which
results are seen and runs started. LibTorch is not part of the package:
mla-draft-setup installs it for the user who runs it, on request with CUDA.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Where dpkg-shlibdeps finds LibTorch; no package owns it, so it becomes no dependency.
cmake_path(GET LibTorch_CPU_LIBRARY PARENT_PATH CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS)
# mla-draft-setup makes its environments with them.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-venv, ca-certificates")
include(CPack)
