export interface Point {
  readonly x: number
  readonly y: number
}

/** The visible part of a drawing, in the units of its points. */
export interface Viewport extends Point {
  readonly width: number
  readonly height: number
}

export const ZOOM_MAX = 8

/** Magnification compared with the view of the whole drawing; 1 or more. */
export function zoomFactor(whole: Viewport, view: Viewport): number {
  return whole.width / view.width
}

/**
 * Zooms by a factor and keeps `at` at its place on the screen. The result is never larger than the
 * whole drawing, and never smaller than its `ZOOM_MAX`-th part.
 */
export function zoomBy(
  whole: Viewport,
  view: Viewport,
  factor: number,
  at: Point = centerOf(view),
): Viewport {
  const zoom = Math.min(ZOOM_MAX, Math.max(1, zoomFactor(whole, view) * factor))
  const [width, height] = [whole.width / zoom, whole.height / zoom]
  const [left, top] = [(at.x - view.x) / view.width, (at.y - view.y) / view.height]
  return within(whole, { x: at.x - left * width, y: at.y - top * height, width, height })
}

/** Moves the visible part, at most to the edge of the drawing. */
export function panBy(whole: Viewport, view: Viewport, dx: number, dy: number): Viewport {
  return within(whole, { ...view, x: view.x + dx, y: view.y + dy })
}

/** Centers the visible part on the point, unless it contains the point already. */
export function scrollToPoint(whole: Viewport, view: Viewport, { x, y }: Point): Viewport {
  const { width, height } = view
  const isInside = x >= view.x && y >= view.y && x <= view.x + width && y <= view.y + height
  return isInside ? view : within(whole, { x: x - width / 2, y: y - height / 2, width, height })
}

function centerOf({ x, y, width, height }: Viewport): Point {
  return { x: x + width / 2, y: y + height / 2 }
}

function within(whole: Viewport, view: Viewport): Viewport {
  const x = Math.min(Math.max(view.x, whole.x), whole.x + whole.width - view.width)
  const y = Math.min(Math.max(view.y, whole.y), whole.y + whole.height - view.height)
  return { ...view, x, y }
}
