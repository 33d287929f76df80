// SPDX-License-Identifier: GPL-3.0-or-later
// What the user looks at: one run and one layer, shared by every page.
#pragma once

#include <optional>

#include <QObject>
#include <QString>

namespace mla::ui
{

class SelectionModel : public QObject
{
    Q_OBJECT
public:
    explicit SelectionModel(QObject* parent = nullptr) : QObject(parent) {}

    [[nodiscard]] const QString& run() const { return m_run; }         ///< RunRecord::id, "" = none
    [[nodiscard]] std::optional<int> layer() const { return m_layer; } ///< none = all layers

public slots:
    void setRun(const QString& run)
    {
        if (run == m_run)
            return;
        m_run = run;
        emit runChanged(run);
    }
    void setLayer(std::optional<int> layer)
    {
        if (layer == m_layer)
            return;
        m_layer = layer;
        emit layerChanged(layer);
    }

signals:
    void runChanged(const QString& run);
    void layerChanged(std::optional<int> layer);

private:
    QString m_run;
    std::optional<int> m_layer;
};

} // namespace mla::ui
