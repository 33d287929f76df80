// SPDX-License-Identifier: GPL-3.0-or-later
// What the target accepts: measurements with their figures, matched cells, texts token by token.
#pragma once

#include "widgets/pages/page.h"

namespace mla::ui
{

class AcceptanceTable;
class EmptyState;
class FigureChoice;
class MatchedView;
class TokenTextView;

class AcceptancePage : public Page
{
    Q_OBJECT
public:
    AcceptancePage(StudyDocument& document, SelectionModel& selection, QWidget* parent = nullptr);

protected:
    void refresh() override;
    void showRun() override;
    void changeEvent(QEvent* event) override;

private:
    [[nodiscard]] QWidget* buildMeasurements();
    [[nodiscard]] FigureChoice* addChoice(const QString& name);
    void fillFigures();
    void chooseRun(const QString& run);
    void followPalette();

    AcceptanceTable* m_table;
    FigureChoice* m_rates;
    FigureChoice* m_reasons;
    MatchedView* m_matched;
    TokenTextView* m_tokens;
    EmptyState* m_state;
};

} // namespace mla::ui
