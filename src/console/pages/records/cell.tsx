import { pathTo } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import { Badge } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { isObject } from './form-model.ts'
import { kindAt } from './kinds.ts'

const SHOWN_ITEMS = 3
const TIME = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/

/** States that mean the same in every kind, as a badge. */
const states: Readonly<
  Record<
    string,
    { readonly on: readonly ['good' | 'warn' | 'plain', string]; readonly off: string }
  >
> = {
  isOnline: { on: ['good', texts.cell.online], off: texts.cell.offline },
  hasApiSession: { on: ['good', texts.cell.loggedIn], off: '' },
  disabled: { on: ['warn', texts.cell.disabled], off: '' },
  isVerified: { on: ['good', texts.cell.verified], off: texts.cell.unverified },
  enabled: { on: ['good', texts.cell.enabled], off: texts.cell.disabled },
}

/** Shows the value of a record in a table, always as text. */
export function Cell({ name, value }: { readonly name: string; readonly value: unknown }) {
  if (value === null || value === undefined || value === '') return <span class="faint">–</span>
  const state = states[name]
  if (typeof value === 'boolean' && state !== undefined) return <State isOn={value} {...state} />
  if (typeof value === 'boolean') return <>{value ? texts.cell.yes : texts.cell.no}</>
  if (Array.isArray(value)) return <Items name={name} items={value} />
  if (isObject(value)) return <Reference value={value} />
  const text = String(value)
  if (TIME.test(text)) return <Time at={text} />
  return <span class="clip">{visibleText(text)}</span>
}

function State(props: {
  readonly isOn: boolean
  readonly on: readonly ['good' | 'warn' | 'plain', string]
  readonly off: string
}) {
  const { isOn, on, off } = props
  if (isOn) return <Badge tone={on[0]}>{on[1]}</Badge>
  return off === '' ? <span class="faint">–</span> : <Badge icon="minus">{off}</Badge>
}

function Items({ name, items }: { readonly name: string; readonly items: readonly unknown[] }) {
  if (items.length === 0) return <span class="faint">–</span>
  const isAttribute = name === 'roleAttributes'
  const shown = items.slice(0, SHOWN_ITEMS)
  return (
    <span class="chips">
      {shown.map((item, at) => (
        <span class="chip" key={at}>
          <span>{isAttribute ? `#${itemText(item)}` : itemText(item)}</span>
        </span>
      ))}
      {items.length > shown.length ? (
        <span class="faint tiny">{texts.cell.more(items.length - shown.length)}</span>
      ) : null}
    </span>
  )
}

function itemText(item: unknown): string {
  const text = isObject(item) ? (item['name'] ?? item['id'] ?? '') : item
  return visibleText(String(text))
}

function Reference({ value }: { readonly value: Readonly<Record<string, unknown>> }) {
  const { entity, id, name } = value
  if (typeof entity !== 'string' || typeof id !== 'string') {
    return <span class="clip mono">{JSON.stringify(value)}</span>
  }
  const text = visibleText(typeof name === 'string' && name !== '' ? name : id)
  if (kindAt(entity) === null) return <>{text}</>
  return <a href={pathTo(entity, id)}>{text}</a>
}
