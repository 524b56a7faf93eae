import { consolePath } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { LinkButton } from '../../controls/button.tsx'
import { texts } from '../../texts.ts'
import type { WizardName } from '../records/kinds.ts'

/** The heading of a task, with the way back to all tasks. */
export function WizardHead(props: { readonly name: WizardName; readonly lead?: string }) {
  const { wizards, pages } = texts
  return (
    <PageHead
      title={wizards.titles[props.name]}
      lead={
        <>
          <a href={consolePath('wizards')}>{pages.wizards}</a> ·{' '}
          {props.lead ?? wizards.what[props.name]}
        </>
      }
    />
  )
}

/** Leaves a task without creating a record. */
export function CancelWizard() {
  return <LinkButton href={consolePath('wizards')}>{texts.cancel}</LinkButton>
}
