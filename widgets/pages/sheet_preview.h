// SPDX-License-Identifier: GPL-3.0-or-later
// A sheet of a report as it will be printed: on white, at its size on paper times a zoom.
#pragma once

#include <optional>

#include <QTimer>
#include <QWidget>

#include "widgets/plots/figure_export.h"

namespace mla::ui
{

class SheetPreview : public QWidget
{
    Q_OBJECT
public:
    explicit SheetPreview(QWidget* parent = nullptr);

    void show(const Sheet& sheet, const ExportOptions& options);
    void clear();
    void setZoom(double zoom); ///< 1 = the size on paper
    /// The zoom at which the whole sheet shows in `room`, within reason.
    void fitInto(const QSize& room);
    [[nodiscard]] const QImage& image() const { return m_image; }
    [[nodiscard]] QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    [[nodiscard]] double pixelsPerMm() const; ///< of the widget, not of the device
    void draw();

    std::optional<Sheet> m_sheet;
    ExportOptions m_options;
    double m_zoom = 1;
    QTimer m_later; ///< several changes at once are drawn once
    QImage m_image;
};

} // namespace mla::ui
