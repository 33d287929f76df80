// SPDX-License-Identifier: GPL-3.0-or-later
// Where did the target follow the draft? A replayed continuation with every token marked for each
// draft, and both models' likeliest choices of the current one.
#pragma once

#include <vector>

#include <QWidget>

#include "core/report/token_view.h"

class QComboBox;
class QLabel;
class QSpinBox;

namespace mla::ui
{

class EmptyState;
class TokenStrip;

class TokenTextView : public QWidget
{
    Q_OBJECT
public:
    explicit TokenTextView(QWidget* parent = nullptr);

    /// Keeps task, k and prompt where the study still has them. `study` must outlive the view or
    /// the next call.
    void setStudy(const StudyData& study);

signals:
    void exportFailed(const QString& message);

private:
    [[nodiscard]] QWidget* buildContent();
    void chooseSource();
    void showPrompt();
    [[nodiscard]] Table shownTable() const;

    const StudyData* m_study = nullptr;
    std::vector<TokenSource> m_sources;
    QComboBox* m_source;
    QSpinBox* m_prompt;
    TokenStrip* m_strip;
    QLabel* m_details;
    EmptyState* m_state;
};

} // namespace mla::ui
