// SPDX-License-Identifier: GPL-3.0-or-later
// The settings of one converter with the cache they lead to, live.
#pragma once

#include <optional>

#include "core/pipeline/weight_spectra.h"
#include "widgets/dialogs/form_section.h"

class QComboBox;
class QSpinBox;

namespace mla::ui
{

class ConverterSection : public FormSection
{
    Q_OBJECT
public:
    /// `converter`: "transmla" or "mha2mla"; decides which fields there are.
    explicit ConverterSection(const std::string& converter, QWidget* parent = nullptr);

    [[nodiscard]] ConverterForm value() const;
    void setValue(const ConverterForm& form);
    /// Settings of the other converter turn this one off.
    void setSettings(const ConvertSettings& settings);
    /// Shows cache elements against the original's; proposes ranks until the user has set some.
    void setModel(const std::optional<InspectReport>& model);
    /// Of the model's weights; adds to the cache's line what the rank will lose of them.
    void setSpectra(std::optional<WeightSpectra> spectra);

signals:
    void changed();

private:
    QSpinBox* addSpin(Field field, const QString& label, const QString& explanation, int minimum);
    void showCache();
    [[nodiscard]] QString predictedError() const;

    std::string m_converter;
    QSpinBox* m_rank = nullptr;
    QSpinBox* m_rope = nullptr;
    QSpinBox* m_fold = nullptr;
    QComboBox* m_select = nullptr;
    QComboBox* m_svd = nullptr;
    QLabel* m_cache = nullptr;
    std::optional<InspectReport> m_model;
    std::optional<WeightSpectra> m_spectra;
    bool m_touched = false, m_proposing = false;
};

} // namespace mla::ui
