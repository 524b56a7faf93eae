import { consolePath } from '../../app/navigation.ts'
import { lazyComponent } from '../../app/lazy.tsx'
import { PageHead } from '../../app/page-head.tsx'
import { Icon } from '../../controls/icon.tsx'
import { texts } from '../../texts.ts'
import { IdentityWizard } from './identity-wizard.tsx'
import { RouterWizard } from './router-wizard.tsx'
import { SignerWizard } from './signer-wizard.tsx'
import { ServiceWizard } from './service-wizard.tsx'

const ImportPage = lazyComponent(() =>
  import('../import/import-page.tsx').then((one) => one.ImportPage),
)

const cards = [
  { name: 'service', icon: 'service' },
  { name: 'identity', icon: 'identity' },
  { name: 'router', icon: 'router' },
  { name: 'signer', icon: 'key' },
  { name: 'import', icon: 'config' },
] as const

/** Tasks that create more than one record. */
export function WizardsPage({ name }: { readonly name: string | null }) {
  const { wizards } = texts
  if (name === 'service') return <ServiceWizard />
  if (name === 'identity') return <IdentityWizard />
  if (name === 'router') return <RouterWizard />
  if (name === 'signer') return <SignerWizard />
  if (name === 'import') return <ImportPage />
  return (
    <>
      <PageHead title={texts.pages.wizards} lead={wizards.lead} />
      <div class="cards">
        {cards.map((card) => (
          <a class="card" key={card.name} href={consolePath('wizards', card.name)}>
            <Icon name={card.icon} size={20} />
            <strong>{wizards.titles[card.name]}</strong>
            <span>{wizards.what[card.name]}</span>
          </a>
        ))}
        <a class="card" href={consolePath('cluster')}>
          <Icon name="cluster" size={20} />
          <strong>{texts.ticket.title}</strong>
          <span>{wizards.controller}</span>
        </a>
      </div>
    </>
  )
}
