// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/figure_choice.h"

#include <QComboBox>
#include <QLabel>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "widgets/common/plain_text.h"
#include "widgets/plots/plot_view.h"

namespace mla::ui
{

namespace
{

/// "acceptance" of "acceptance-transmla-k4".
QString kindOf(const Figure& figure)
{
    return text(figure.id).section(QLatin1Char('-'), 0, 0);
}

} // namespace

FigureChoice::FigureChoice(PlotView* plot, const QString& name, QWidget* parent)
    : QWidget(parent), m_plot(plot), m_box(new QComboBox(this)), m_caption(new QLabel(this))
{
    m_box->setAccessibleName(name);
    m_box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    connect(m_box, &QComboBox::currentIndexChanged, this, &FigureChoice::show);
    m_caption->setWordWrap(true);
    m_caption->setAccessibleName(tr("%1, in words").arg(name));
    m_caption->setTextFormat(Qt::PlainText);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 4); // a splitter's handle may follow
    layout->addWidget(m_box);
    layout->addWidget(m_plot, 1);
    layout->addWidget(m_caption);
}

void FigureChoice::setFigures(std::vector<Figure> figures, const QString& emptyText)
{
    const int shown = m_box->currentIndex();
    const std::string before =
        shown >= 0 ? m_figures[static_cast<std::size_t>(shown)].id : std::string();
    const QSignalBlocker quiet(m_box);
    m_figures = std::move(figures);
    m_box->clear();
    int kept = 0;
    for (const Figure& figure : m_figures) {
        if (figure.id == before)
            kept = m_box->count();
        m_box->addItem(text(figure.title));
    }
    m_box->setVisible(m_figures.size() > 1);
    m_caption->setVisible(!m_figures.empty());
    if (m_figures.empty()) {
        m_plot->clear(emptyText);
        return;
    }
    m_box->setCurrentIndex(kept);
    show(kept);
}

void FigureChoice::show(int index)
{
    if (index < 0)
        return;
    const Figure& figure = m_figures[static_cast<std::size_t>(index)];
    m_plot->setFigure(figure);
    m_caption->setText(text(figure.caption));
}

void FigureChoice::follow(const QString& part)
{
    const int shown = m_box->currentIndex();
    if (shown < 0)
        return;
    const Figure& current = m_figures[static_cast<std::size_t>(shown)];
    if (text(current.id).contains(part))
        return;
    for (int index = 0; index < m_box->count(); ++index) {
        const Figure& figure = m_figures[static_cast<std::size_t>(index)];
        if (kindOf(figure) != kindOf(current) || !text(figure.id).contains(part))
            continue;
        m_box->setCurrentIndex(index);
        return;
    }
}

} // namespace mla::ui
