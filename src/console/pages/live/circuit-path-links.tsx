import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import { StateBadge } from '../records/record-state.tsx'
import type { PathRouter } from './circuit-path.ts'

/** The routers of a circuit in path order, each linked: `router1 → router2`. */
export function CircuitPathLinks({ routers }: { readonly routers: readonly PathRouter[] }) {
  return (
    <>
      {routers.map(({ id, name, isOffline }, at) => (
        <span key={id}>
          {at === 0 ? '' : ' → '}
          <a href={consolePath('edge-routers', id)}>{name === '' ? id : visibleText(name)}</a>
          {isOffline === true ? (
            <>
              {' '}
              <StateBadge state="offline" />
            </>
          ) : null}
        </span>
      ))}
    </>
  )
}
