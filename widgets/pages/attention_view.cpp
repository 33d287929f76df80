// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/attention_view.h"

#include <algorithm>

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QSplitter>
#include <QVBoxLayout>

#include "core/report/figure_data.h"
#include "widgets/common/plain_text.h"
#include "widgets/plots/plot_view.h"

namespace mla::ui
{

namespace
{

/// "layer 3, head 0: Once upon a time"
QString titleOf(const AttentionMapRecord& map)
{
    constexpr int longest = 60;
    QString prompt = text(map.prompt).simplified();
    if (prompt.size() > longest)
        prompt = prompt.left(longest) + QStringLiteral("…");
    return AttentionView::tr("layer %1, head %2: %3")
        .arg(map.layer.value)
        .arg(map.head.value)
        .arg(prompt);
}

} // namespace

AttentionView::AttentionView(const std::array<PlotView*, 3>& plots, QWidget* parent)
    : QWidget(parent), m_plots(plots), m_stored(new QComboBox(this)), m_prompt(new QLineEdit(this)),
      m_layer(new QSpinBox(this)), m_head(new QSpinBox(this)),
      m_compute(new QPushButton(tr("&Compute map"), this)), m_caption(new QLabel(this))
{
    auto* maps = new QSplitter(Qt::Horizontal, this);
    constexpr int narrowest = 145; // three of them need no wider a window than two of the others
    for (PlotView* plot : m_plots) {
        plot->setMinimumWidth(narrowest);
        maps->addWidget(plot);
    }
    maps->setChildrenCollapsible(false);
    maps->setSizes({1000, 1000, 1000});
    m_caption->setWordWrap(true);
    m_caption->setTextFormat(Qt::PlainText);
    m_caption->setAccessibleName(tr("The map, in words"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(buildChoice());
    layout->addWidget(m_stored);
    layout->addWidget(maps, 1);
    layout->addWidget(m_caption);
    m_stored->setAccessibleName(tr("Computed maps"));
    m_stored->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    connect(m_stored, &QComboBox::currentIndexChanged, this, &AttentionView::showStored);
    connect(m_compute, &QPushButton::clicked, this, [this] { emit requested(choice()); });
    connect(m_prompt, &QLineEdit::returnPressed, m_compute, &QPushButton::click);
    connect(m_prompt, &QLineEdit::textChanged, this, &AttentionView::followPrompt);
    connect(m_layer, &QSpinBox::valueChanged, this, [this](int layer) {
        emit layerChosen(layer);
        showChosen();
    });
    connect(m_head, &QSpinBox::valueChanged, this, &AttentionView::showChosen);
    setRun(nullptr, 0, 0);
}

QWidget* AttentionView::buildChoice()
{
    auto* row = new QWidget(this);
    auto* line = new QHBoxLayout(row);
    line->setContentsMargins(0, 0, 0, 0);
    const auto add = [&](const QString& title, QWidget* field, int stretch) {
        auto* label = new QLabel(title, row);
        label->setBuddy(field);
        field->setAccessibleName(QString(title).remove(QLatin1Char('&')));
        line->addWidget(label);
        line->addWidget(field, stretch);
    };
    add(tr("&Prompt"), m_prompt, 1);
    m_prompt->setPlaceholderText(tr("A text of at most 128 tokens"));
    add(tr("&Layer"), m_layer, 0);
    add(tr("&Head"), m_head, 0);
    line->addWidget(m_compute);
    return row;
}

void AttentionView::setRun(const RunRecord* run, int layers, int heads)
{
    m_run = run;
    {
        const QSignalBlocker quietLayer(m_layer), quietHead(m_head);
        m_layer->setRange(0, std::max(0, layers - 1));
        m_head->setRange(0, std::max(0, heads - 1));
    }
    fillStored();
    showChosen();
    followPrompt();
}

void AttentionView::setReady(bool ready)
{
    m_ready = ready;
    followPrompt();
}

void AttentionView::setLayer(std::optional<int> layer)
{
    if (!layer || *layer == m_layer->value())
        return;
    const QSignalBlocker quiet(m_layer); // it was not chosen here
    m_layer->setValue(*layer);
    showChosen();
}

MapChoice AttentionView::choice() const
{
    return {m_layer->value(), m_head->value(), m_prompt->text()};
}

void AttentionView::followPrompt()
{
    m_compute->setEnabled(m_ready && m_run && !m_prompt->text().trimmed().isEmpty());
}

void AttentionView::fillStored()
{
    const QSignalBlocker quiet(m_stored);
    m_stored->clear();
    if (m_run)
        for (const AttentionMapRecord& map : m_run->attentionMaps)
            m_stored->addItem(titleOf(map));
    m_stored->setVisible(m_stored->count() > 0);
    // Without a prompt there is nothing chosen yet: the newest map is what to look at.
    if (m_run && !m_run->attentionMaps.empty() && m_prompt->text().isEmpty())
        take(m_run->attentionMaps.back());
}

void AttentionView::take(const AttentionMapRecord& map)
{
    const QSignalBlocker quietPrompt(m_prompt), quietLayer(m_layer), quietHead(m_head);
    m_prompt->setText(text(map.prompt));
    m_layer->setValue(map.layer.value);
    m_head->setValue(map.head.value);
}

void AttentionView::showStored(int index)
{
    if (index < 0 || !m_run)
        return;
    take(m_run->attentionMaps[static_cast<std::size_t>(index)]);
    emit layerChosen(m_layer->value());
    showChosen();
    followPrompt();
}

/// The map of layer, head and prompt if it was computed; else says that it can be.
void AttentionView::showChosen()
{
    const MapChoice chosen = choice();
    const AttentionMapRecord* found = nullptr;
    int index = -1;
    for (std::size_t i = 0; m_run && i < m_run->attentionMaps.size(); ++i) {
        const AttentionMapRecord& map = m_run->attentionMaps[i];
        if (map.layer.value != chosen.layer || map.head.value != chosen.head ||
            text(map.prompt) != chosen.prompt)
            continue;
        found = &map;
        index = static_cast<int>(i);
    }
    const QSignalBlocker quiet(m_stored);
    m_stored->setCurrentIndex(index);
    show(found);
}

void AttentionView::show(const AttentionMapRecord* map)
{
    const std::vector<Figure> figures = map ? attentionMaps(*m_run, *map) : std::vector<Figure>();
    const QString hint = m_run ? tr("Type a prompt, choose a layer and a head, then compute the "
                                    "map.")
                               : tr("Select a run in the Study page.");
    for (std::size_t i = 0; i < m_plots.size(); ++i) {
        if (i < figures.size())
            m_plots[i]->setFigure(figures[i]);
        else
            m_plots[i]->clear(hint);
    }
    m_caption->setText(figures.empty() ? QString() : text(figures.front().caption));
}

} // namespace mla::ui
