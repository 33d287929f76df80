// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/sheet_preview.h"

#include <algorithm>

#include <QPainter>

namespace mla::ui
{

namespace
{
constexpr double mmPerInch = 25.4;
constexpr int frame = 1;
constexpr double smallestFit = 0.2, largestFit = 3;
} // namespace

SheetPreview::SheetPreview(QWidget* parent) : QWidget(parent)
{
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    setAccessibleName(tr("The figure as printed"));
    m_later.setSingleShot(true);
    m_later.setInterval(0);
    connect(&m_later, &QTimer::timeout, this, &SheetPreview::draw);
}

void SheetPreview::show(const Sheet& sheet, const ExportOptions& options)
{
    m_sheet = sheet;
    m_options = options;
    m_later.start();
}

void SheetPreview::clear()
{
    m_sheet.reset();
    m_later.start();
}

void SheetPreview::setZoom(double zoom)
{
    m_zoom = zoom;
    m_later.start();
}

void SheetPreview::fitInto(const QSize& room)
{
    if (!m_sheet)
        return;
    const QSizeF mm = sheetSizeMm(*m_sheet, m_options);
    const QSizeF inside = QSizeF(room) - QSizeF(4, 4) * frame;
    const double scale = std::min(inside.width() / mm.width(), inside.height() / mm.height());
    setZoom(std::clamp(scale * mmPerInch / logicalDpiX(), smallestFit, largestFit));
}

double SheetPreview::pixelsPerMm() const
{
    return logicalDpiX() / mmPerInch * m_zoom;
}

void SheetPreview::draw()
{
    m_image = QImage();
    if (m_sheet) {
        m_image = sheetImage(*m_sheet, m_options, pixelsPerMm() * devicePixelRatioF());
        m_image.setDevicePixelRatio(devicePixelRatioF());
    }
    setFixedSize(sizeHint());
    update();
}

QSize SheetPreview::sizeHint() const
{
    return m_image.isNull() ? QSize(0, 0)
                            : m_image.deviceIndependentSize().toSize() + QSize(2, 2) * frame;
}

void SheetPreview::paintEvent(QPaintEvent*)
{
    if (m_image.isNull())
        return;
    QPainter painter(this);
    painter.drawImage(QPoint(frame, frame), m_image);
    painter.setPen(palette().color(QPalette::Mid));
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

} // namespace mla::ui
