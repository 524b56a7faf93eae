import { hasPermission } from '../../app/management-document.ts'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { LinkButton } from '../../controls/button.tsx'
import { Icon } from '../../controls/icon.tsx'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import { readRows } from '../records/record-data.ts'

const REFRESH_MS = 10_000

const steps = [
  { name: 'router', kind: 'edge-routers', permission: 'router', filter: '' },
  {
    name: 'identity',
    kind: 'identities',
    permission: 'identity',
    filter: 'isAdmin = false and not (type = "Router")',
  },
  { name: 'service', kind: 'services', permission: 'service', filter: '' },
] as const

/** The first tasks of a new network; those that are done have a tick. */
export function StartHere() {
  const { startHere } = pageTexts
  const { wizards } = texts
  const mine = steps.filter(({ permission }) =>
    [`${permission}.read`, `${permission}.create`].every(hasPermission),
  )
  const loaded = useLoadedData(
    'start-here',
    async (signal) => {
      const pages = await Promise.all(
        mine.map(({ kind, filter }) => readRows(kind, filter, signal, 1)),
      )
      return pages.map(({ totalCount }) => totalCount > 0)
    },
    REFRESH_MS,
  )
  const { value: done } = loaded.data
  if (mine.length === 0) return null
  const next = done?.indexOf(false) ?? -1
  return (
    <section class="panel" aria-labelledby="start-here">
      <div class="panel-head">
        <h2 id="start-here">{startHere.title}</h2>
      </div>
      <ol class="start-here">
        {mine.map(({ name }, at) => {
          const isDone = done?.[at] === true
          return (
            <li key={name}>
              <span class={`action-icon ${isDone ? 'good' : ''}`}>
                <Icon name={isDone ? 'check' : 'dot'} />
              </span>
              <div>
                <strong>{wizards.titles[name]}</strong>
                <p class="soft small">{isDone ? startHere.done : wizards.what[name]}</p>
              </div>
              {isDone ? null : (
                <LinkButton
                  kind={at === next ? 'primary' : 'plain'}
                  href={consolePath('wizards', name)}
                >
                  {wizards.titles[name]}
                </LinkButton>
              )}
            </li>
          )
        })}
      </ol>
    </section>
  )
}
