// SPDX-License-Identifier: GPL-3.0-or-later
// The tool bar that shows and sets the run and the layer that all pages look at.
#pragma once

#include <QToolBar>

#include "widgets/models/selection_model.h"
#include "widgets/models/study_document.h"

class QComboBox;

namespace mla::ui
{

class SelectionBar : public QToolBar
{
    Q_OBJECT
public:
    SelectionBar(StudyDocument& document, SelectionModel& selection, QWidget* parent = nullptr);

    /// Moves the layer selection; from "all layers" it enters at either end.
    void stepLayer(int by);

private:
    void showStudy();
    void showRun();
    void showLayer();
    void fillLayers();

    StudyDocument& m_document;
    SelectionModel& m_selection;
    QComboBox* m_runs;
    QComboBox* m_layers;
};

} // namespace mla::ui
