// SPDX-License-Identifier: GPL-3.0-or-later
// Records to and from HDF5 groups; used within the store only. Errors name the HDF5 path.
#pragma once

#include "core/store/h5.h"
#include "core/store/records.h"

namespace mla
{

Status writeStudy(h5::Group& root, const StudyData& study);
Result<StudyData> readStudy(const h5::Group& root);

Status writeLayer(h5::Group& group, const LayerRecord& record);
Result<LayerRecord> readLayer(const h5::Group& group);

/// What `fidelity` adds to a run: error_sources, positions, attention_maps.
Status writeRunDiagnostics(h5::Group& run, const RunRecord& record);
Status readRunDiagnostics(const h5::Group& run, RunRecord& record);

Status writeAcceptance(h5::Group& group, const AcceptanceRecord& row);
Result<AcceptanceRecord> readAcceptance(const h5::Group& group);
Status writeContinuations(h5::Group& group, const ContinuationRecord& record);
Result<ContinuationRecord> readContinuations(const h5::Group& group);
Status writeChatPrompts(h5::Group& group, const ChatPromptRecord& record);
Result<ChatPromptRecord> readChatPrompts(const h5::Group& group);
Status writeTokenTexts(h5::Group& group, const TokenTextRecord& record);
Result<TokenTextRecord> readTokenTexts(const h5::Group& group);

Status writeExport(h5::Group& group, const ExportRecord& record);
Result<ExportRecord> readExport(const h5::Group& group);

/// Short texts are attributes, long ones and those with NUL characters datasets of the same name.
Status putText(h5::Group& group, const std::string& name, const std::string& text);
Result<std::string> getText(const h5::Group& group, const std::string& name);

} // namespace mla
