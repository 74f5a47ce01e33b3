//! The same contract without types, so that jobs can be in one list.

use crate::{Close, Error, Job, Metrics, Pulse, Section, Service, User, file::Reader};
use config::Problem;
use serde_json::Value;
use std::{any::Any, fmt, future::Future, pin::Pin, sync::Arc};

/// A future of any job.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A [`Job`].
pub(crate) trait AnyJob: Send + Sync {
    fn name(&self) -> &'static str;
    fn sections(&self) -> Vec<Section>;
    fn renamed(&self) -> crate::Renamed;
    fn read(&self, file: &mut Reader<'_, '_>, node: &crate::Node) -> Option<Box<dyn AnyConfig>>;
}

/// The sections of a job.
pub(crate) trait AnyConfig: Send + Sync {
    fn name(&self) -> &'static str;
    fn capabilities(&self) -> crate::Capabilities;
    fn problems(&self) -> Vec<Problem>;
    fn warnings(&self) -> Vec<Problem>;
    fn privileged(&self, becomes: Option<&User>);
    fn open(self: Box<Self>, drained: bool) -> Boxed<'static, Result<Box<dyn AnyOpened>, Error>>;
    fn config(&self) -> &dyn Any;
    fn into_config(self: Box<Self>) -> Box<dyn Any + Send>;
}

/// A job that is open.
pub(crate) trait AnyOpened: Send {
    fn start(self: Box<Self>) -> Boxed<'static, Result<Box<dyn AnyService>, Error>>;
    fn close(self: Box<Self>, why: Close) -> Boxed<'static, ()>;
}

/// A [`Service`].
pub(crate) trait AnyService: Send + Sync {
    fn name(&self) -> &'static str;
    fn service(&self) -> &dyn Any;
    fn pulse(&self) -> &Pulse;
    fn problems(&self) -> Vec<String>;
    fn status(&self) -> Value;
    fn refresh(&self) -> Boxed<'_, ()>;
    fn render(&self) -> String;
    fn collect(&self, metrics: &mut Metrics<'_>) -> fmt::Result;
    fn control(&self, request: Value) -> serde_json::Result<Boxed<'_, Result<Value, Error>>>;
    fn prepare(
        &self,
        config: Box<dyn AnyConfig>,
    ) -> Boxed<'_, Result<Box<dyn AnyChange + '_>, Error>>;
    fn drain(&self) -> Boxed<'_, ()>;
    fn undrain(&self) -> Boxed<'_, ()>;
    fn stop(&self) -> Boxed<'_, ()>;
}

/// A configuration that is prepared.
pub(crate) trait AnyChange: Send {
    fn commit(&mut self) -> Boxed<'_, Result<(), Error>>;
    fn finish<'a>(self: Box<Self>) -> Boxed<'a, ()>
    where
        Self: 'a;
    fn roll_back<'a>(self: Box<Self>) -> Boxed<'a, ()>
    where
        Self: 'a;
}

/// A job in the list.
pub(crate) struct JobOf<J>(pub(crate) Arc<J>);

/// Its sections.
struct ConfigOf<J: Job> {
    job: Arc<J>,
    config: J::Config,
}

/// What it has opened.
struct OpenedOf<J: Job> {
    job: Arc<J>,
    opened: J::Opened,
}

/// Its service.
struct ServiceOf<S> {
    name: &'static str,
    service: S,
}

/// What its service has prepared.
struct ChangeOf<'s, S: Service> {
    service: &'s S,
    prepared: S::Prepared,
}

impl<J: Job> AnyJob for JobOf<J> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn sections(&self) -> Vec<Section> {
        self.0.sections()
    }

    fn renamed(&self) -> crate::Renamed {
        self.0.renamed()
    }

    fn read(&self, file: &mut Reader<'_, '_>, node: &crate::Node) -> Option<Box<dyn AnyConfig>> {
        let config = self.0.read(file, node)?;
        Some(Box::new(ConfigOf { job: self.0.clone(), config }))
    }
}

impl<J: Job> AnyConfig for ConfigOf<J> {
    fn name(&self) -> &'static str {
        self.job.name()
    }

    fn capabilities(&self) -> crate::Capabilities {
        self.job.capabilities()
    }

    fn problems(&self) -> Vec<Problem> {
        self.job.problems(&self.config)
    }

    fn warnings(&self) -> Vec<Problem> {
        self.job.warnings(&self.config)
    }

    fn privileged(&self, becomes: Option<&User>) {
        self.job.privileged(&self.config, becomes);
    }

    fn open(self: Box<Self>, drained: bool) -> Boxed<'static, Result<Box<dyn AnyOpened>, Error>> {
        let Self { job, config } = *self;
        Box::pin(async move {
            let opened = job.open(config, drained).await?;
            Ok(Box::new(OpenedOf { job, opened }) as Box<dyn AnyOpened>)
        })
    }

    fn config(&self) -> &dyn Any {
        &self.config
    }

    fn into_config(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(self.config)
    }
}

impl<J: Job> AnyOpened for OpenedOf<J> {
    fn start(self: Box<Self>) -> Boxed<'static, Result<Box<dyn AnyService>, Error>> {
        let Self { job, opened } = *self;
        Box::pin(async move {
            let service = job.start(opened).await?;
            Ok(Box::new(ServiceOf { name: job.name(), service }) as Box<dyn AnyService>)
        })
    }

    fn close(self: Box<Self>, why: Close) -> Boxed<'static, ()> {
        let Self { job, opened } = *self;
        Box::pin(async move { job.close(opened, why).await })
    }
}

impl<S: Service> AnyService for ServiceOf<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn service(&self) -> &dyn Any {
        &self.service
    }

    fn pulse(&self) -> &Pulse {
        self.service.pulse()
    }

    fn problems(&self) -> Vec<String> {
        self.service.problems()
    }

    fn status(&self) -> Value {
        self.service.status()
    }

    fn refresh(&self) -> Boxed<'_, ()> {
        Box::pin(self.service.refresh())
    }

    fn render(&self) -> String {
        self.service.render()
    }

    fn collect(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        self.service.collect(metrics)
    }

    fn control(&self, request: Value) -> serde_json::Result<Boxed<'_, Result<Value, Error>>> {
        let request = serde_json::from_value(request)?;
        Ok(Box::pin(self.service.control(request)))
    }

    fn prepare(
        &self,
        config: Box<dyn AnyConfig>,
    ) -> Boxed<'_, Result<Box<dyn AnyChange + '_>, Error>> {
        Box::pin(async move {
            let Ok(config) = config.into_config().downcast::<S::Config>() else {
                return Err(format!("these are not the sections of {}", self.name).into());
            };
            let service = &self.service;
            let prepared = service.prepare(*config).await?;
            Ok(Box::new(ChangeOf { service, prepared }) as Box<dyn AnyChange + '_>)
        })
    }

    fn drain(&self) -> Boxed<'_, ()> {
        Box::pin(self.service.drain())
    }

    fn undrain(&self) -> Boxed<'_, ()> {
        Box::pin(self.service.undrain())
    }

    fn stop(&self) -> Boxed<'_, ()> {
        Box::pin(self.service.stop())
    }
}

impl<S: Service> AnyChange for ChangeOf<'_, S> {
    fn commit(&mut self) -> Boxed<'_, Result<(), Error>> {
        Box::pin(self.service.commit(&mut self.prepared))
    }

    fn finish<'a>(self: Box<Self>) -> Boxed<'a, ()>
    where
        Self: 'a,
    {
        Box::pin(async move { self.service.finish(self.prepared).await })
    }

    fn roll_back<'a>(self: Box<Self>) -> Boxed<'a, ()>
    where
        Self: 'a,
    {
        Box::pin(async move { self.service.roll_back(self.prepared).await })
    }
}
