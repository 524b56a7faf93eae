import type { ComponentChildren } from 'preact'

/** The heading of a page; it gets the focus after navigation. */
export function PageHead(props: {
  readonly title: ComponentChildren
  readonly lead?: ComponentChildren
  readonly children?: ComponentChildren
}) {
  return (
    <div class="page-head">
      <div>
        <h1 tabIndex={-1}>{props.title}</h1>
        {props.lead === undefined ? null : <p class="page-lead">{props.lead}</p>}
      </div>
      <div class="row">{props.children}</div>
    </div>
  )
}
