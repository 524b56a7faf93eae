import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'

/** Link to the identity of a client; shows its id while its name is unknown. */
export function ClientLink({
  id,
  name,
}: {
  readonly id: string
  readonly name?: string | undefined
}) {
  if (name === undefined) return <span class="clip mono">{id}</span>
  return (
    <a class="clip" href={consolePath('identities', id)} title={id}>
      {visibleText(name)}
    </a>
  )
}
